// The command as one of several processes of mpirun, according to the environment.
#include "ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "heed/distributed/thread_ranks.h"
#include "support/command.h"
#include "verbs.h"

namespace heed::cli { namespace {

using testing::HasSubstr;
using testing::StrEq;
using testing::ThrowsMessage;

bool divides(std::vector<std::string> arguments) {
  std::vector<char*> argv;
  argv.reserve(arguments.size());
  for (std::string& argument : arguments) argv.push_back(argument.data());
  return is_divided(static_cast<int>(argv.size()), argv.data());
}

class Ranks : public testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }
  static void forget() {
    for (const char* name :
         {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE", "PMIX_RANK"}) {
      ::unsetenv(name);
    }
  }
};

TEST_F(Ranks, TrainingIsDividedWhereSeveralProcessesWereStarted) {
  EXPECT_FALSE(divides({"heed", "train", "lm"}));
  ::setenv("PMIX_RANK", "0", 1);
  EXPECT_TRUE(divides({"heed", "train", "lm"}));
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"}) {
    ::setenv(name, "1", 1);
    EXPECT_FALSE(divides({"heed", "train", "lm"})) << name;
    ::setenv(name, "4", 1);
    EXPECT_TRUE(divides({"heed", "train", "lm"})) << name;
    EXPECT_TRUE(divides({"heed", "bench", "distributed", "--json"})) << name;
    EXPECT_FALSE(divides({"heed", "bench", "forward"})) << name;
    EXPECT_FALSE(divides({"heed", "bench"})) << name;
    EXPECT_FALSE(divides({"heed", "info"})) << name;
    EXPECT_FALSE(divides({"heed"})) << name;
    ::unsetenv(name);
  }
}

TEST_F(Ranks, AloneAProcessIsTheFirst) {
  EXPECT_EQ(ranks(), nullptr);
  EXPECT_TRUE(is_first_rank());
  EXPECT_EQ(from_first_rank([] { return std::string("text"); }), "text");
  refuse_ranks("train translate");
  run_thread_ranks(1, [](Communicator& one) {
    detail::set_ranks(&one);
    EXPECT_TRUE(is_first_rank());
    EXPECT_EQ(from_first_rank([] { return std::string("text"); }), "text");
    EXPECT_THAT([] { refuse_ranks("train translate"); },
                ThrowsMessage<UsageError>(HasSubstr("1 processes were started, expected one")));
    detail::set_ranks(nullptr);
  });
}

#ifndef HEED_WITH_MPI
TEST_F(Ranks, WithoutMpiTheCommandSaysSo) {
  const auto result =
      testing_support::run_command({"train", "lm"}, {{"OMPI_COMM_WORLD_SIZE", "4"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("this heed was built without MPI"));
}
#endif

}  // namespace
}  // namespace heed::cli
