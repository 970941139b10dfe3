// The command under tight limits of the system and with invalid environment variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <string>
#include <vector>

#include "support/child.h"
#include "support/command.h"
#include "support/sanitizers.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::Child;
using testing_support::CommandResult;
using testing_support::run_command;
using testing_support::TemporaryFolder;

constexpr rlim_t kKilobyte = 1 << 10;
constexpr rlim_t kMegabyte = 1 << 20;

const std::vector<std::string> kTraining{"train", "copy", "--steps", "2"};

CommandResult run_limited(const std::vector<std::string>& arguments, __rlimit_resource what,
                          rlim_t bytes) {
  Child command(arguments, [&] {
    const rlimit limit{bytes, bytes};
    ::setrlimit(what, &limit);
    ::alarm(60);  // ends a command that hangs
  });
  return command.finish();
}

TEST(Process, AWrongTargetIsSaidBeforeAnythingElse) {
  const TemporaryFolder folder;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"generate", "--model", "/nowhere"},
                                             {"demo"},
                                             {"explain", "A sentence"},
                                             {"mask", "causal", "--seq", "4"},
                                             {"lesson", "softmax"},
                                             {"train", "lm", "--save", folder / "run"}}) {
    const auto result = run_command(arguments, {{"HEED_TARGET", "zzz"}});
    EXPECT_EQ(result.exit_code, 1) << arguments[0];
    EXPECT_EQ(result.out, "") << arguments[0];
    EXPECT_THAT(result.err,
                AllOf(StartsWith("heed " + arguments[0]),
                      HasSubstr("HEED_TARGET is 'zzz', but this processor has only: reference")));
  }
  EXPECT_EQ(folder.num_files(), 0U);
}

TEST(Process, AWrongTimeToSpinIsSaidBeforeAnythingElse) {
  const auto result = run_command({"demo"}, {{"HEED_SPIN_MICROSECONDS", "long"}});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("HEED_SPIN_MICROSECONDS is 'long', expected microseconds"));
}

TEST(Process, HelpNeedsNothing) {
  const auto result = run_command({"generate", "--help"}, {{"HEED_TARGET", "zzz"}});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("--model"));
}

// OpenBLAS requests unavailable memory again and again.
TEST(Process, TrainingWithoutMemoryForProductsEnds) {
#if defined(HEED_HAS_ADDRESS_SANITIZER) || defined(HEED_HAS_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers need terabytes of addresses";
#endif
  for (const rlim_t megabytes : {150, 200, 300, 450}) {
    const CommandResult result = run_limited(kTraining, RLIMIT_AS, megabytes * kMegabyte);
    ASSERT_TRUE(result.exit_code == 0 || result.exit_code == 1) << result.exit_code;
    if (result.exit_code == 1) {
      EXPECT_THAT(result.err, HasSubstr("not enough memory"));
    }
    if (megabytes == 150) {
      EXPECT_EQ(result.exit_code, 1);
      EXPECT_THAT(result.err, AllOf(HasSubstr("not enough memory for matrix products"),
                                    HasSubstr("ulimit -v")));
    }
  }
}

TEST(Process, AFileThatMayNotGrowIsAnError) {
  const TemporaryFolder folder;
  std::vector<std::string> arguments = kTraining;
  arguments.insert(arguments.end(), {"--save", folder / "run"});
  for (const auto& line :
       {arguments, {"mask", "causal", "--seq", "4", "--out", folder / "m.html"}}) {
    const CommandResult result = run_limited(line, RLIMIT_FSIZE, 0);
    EXPECT_EQ(result.exit_code, 1) << line[0];
    EXPECT_THAT(result.err, AllOf(StartsWith("heed "), HasSubstr("File too large"))) << line[0];
  }
}

TEST(Process, ASmallStackIsAnError) {
#if defined(HEED_HAS_ADDRESS_SANITIZER) || defined(HEED_HAS_THREAD_SANITIZER)
  GTEST_SKIP() << "sanitizers need more of it";
#endif
  const CommandResult result = run_limited(kTraining, RLIMIT_STACK, 64 * kKilobyte);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("the stack is limited to 64 KiB, at least 256 are needed"));
  EXPECT_EQ(run_limited(kTraining, RLIMIT_STACK, 256 * kKilobyte).exit_code, 0);
  EXPECT_EQ(run_limited({"demo"}, RLIMIT_STACK, 256 * kKilobyte).exit_code, 0);
}

}  // namespace
}  // namespace heed
