// heed bench distributed: ranks of one process, and ranks that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/command.h"

namespace heed {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_support::run_command;
using Arguments = std::vector<std::string>;

Arguments with(const Arguments& options) {
  Arguments arguments{"bench", "distributed", "--heads", "2", "--head-dim", "8"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return arguments;
}

nlohmann::json run_json(const Arguments& options) {
  Arguments arguments = with(options);
  arguments.emplace_back("--json");
  const auto result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

TEST(BenchDistributed, SetsRanksBesideOneProcess) {
  const auto json = run_json({"--seq", "2100", "--ranks", "1,2,3", "--pass", "forward,backward",
                              "--threads", "2", "--repeat", "1"});
  const auto& results = json.at("results");
  ASSERT_EQ(results.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    const auto& row = results[i];
    const auto& one = row.at("case");
    EXPECT_EQ(one.at("pass"), i < 3 ? "forward" : "backward");
    EXPECT_EQ(one.at("ranks"), i % 3 + 1);
    EXPECT_EQ(one.at("threads"), i % 3 == 0 ? 2 : 1);
    EXPECT_EQ(one.at("seq"), 2100);
    EXPECT_GT(row.at("median_ms"), 0);
    const double efficiency = row.at("efficiency");
    EXPECT_DOUBLE_EQ(efficiency,
                     row.at("one_process_ms").get<double>() / row.at("median_ms").get<double>());
    EXPECT_GE(row.at("waiting_share"), 0);
    EXPECT_LT(row.at("waiting_share"), 1);
  }
  // Two segments and 52 tokens; of three ranks the last one reads the two before it.
  EXPECT_EQ(results[0].at("bytes_received"), 0);
  EXPECT_EQ(results[2].at("bytes_received"), 2 * 1024 * 2 * (8 + 8) * 4);
}

TEST(BenchDistributed, PrintsATable) {
  const auto result = run_command(with({"--seq", "1100", "--repeat", "1"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("one process ms"), HasSubstr("forward")));
}

TEST(BenchDistributed, SimulatesRanksThatAreNotThere) {
  const testing_support::TemporaryFolder folder;
  const std::string picture = folder / "efficiency.svg";
  const auto json = run_json({"--simulate", "--seq", "4096,65536", "--ranks", "1,4,64", "--out",
                              picture, "--latency", "100", "--bandwidth", "1"});
  EXPECT_EQ(json.at("latency_us"), 100);
  EXPECT_GT(json.at("pairs_per_s"), 0);
  const auto& results = json.at("results");
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[0].at("efficiency"), 1);
  EXPECT_EQ(results[3].at("efficiency"), 1);
  for (std::size_t i = 0; i < 6; ++i) EXPECT_LE(results[i].at("efficiency"), 1.0000001);
  // Longer sequences leave 64 ranks more to do for each message; of 4 segments most have nothing.
  EXPECT_GT(results[5].at("efficiency"), results[2].at("efficiency"));
  EXPECT_TRUE(std::filesystem::exists(picture));
}

TEST(BenchDistributed, RefusesMisuse) {
  const auto expect_error = [](const Arguments& options, const std::string& text) {
    const auto result = run_command(with(options));
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("heed bench distributed: "), HasSubstr(text)));
  };
  expect_error({"--latency", "3"}, "--simulate");
  expect_error({"--simulate", "--out", "picture.txt"}, "--out");
  expect_error({"--mask", "banana"}, "--mask");
  expect_error({"--ranks", "0"}, "--ranks");
  expect_error({"--kv-heads", "3"}, "num_heads is 2, expected a multiple of num_kv_heads, 3");
}

}  // namespace
}  // namespace heed
