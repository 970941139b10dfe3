// heed bench distributed: ranks of one process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "bench/measured_ranks.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/distributed/thread_ranks.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
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
  // Two segments and 52 tokens; the last of three ranks reads the two before it.
  EXPECT_EQ(results[0].at("bytes_received"), 0);
  EXPECT_EQ(results[2].at("bytes_received"), 2 * 1024 * 2 * (8 + 8) * 4);
}

TEST(BenchDistributed, ComparesWaysOfDividing) {
  const auto json = run_json({"--seq", "1100", "--ranks", "2", "--divide", "tokens,heads",
                              "--threads", "2", "--repeat", "1"});
  ASSERT_EQ(json.at("results").size(), 2U);
  const auto& by_heads = json.at("results")[1];
  EXPECT_EQ(json.at("results")[0].at("case").at("divided_by"), "tokens");
  EXPECT_EQ(by_heads.at("case").at("divided_by"), "heads");
  EXPECT_EQ(by_heads.at("balance"), 1);
  // One rank sends 76 queries, keys and values per head to the rank that has 1024 and receives the
  // results.
  EXPECT_EQ(by_heads.at("bytes_received"), std::max(76 * 3 + 1024, 1024 * 3 + 76) * 8 * 4);
}

TEST(BenchDistributed, PrintsATable) {
  const auto result = run_command(with({"--seq", "1100", "--repeat", "1"}));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("one process ms"), HasSubstr("forward")));
}

TEST(BenchDistributed, RefusesMisuse) {
  const auto expect_error = [](const Arguments& options, const std::string& text) {
    const auto result = run_command(with(options));
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("heed bench distributed: "), HasSubstr(text)));
  };
  expect_error({"--mask", "banana"}, "--mask");
  expect_error({"--ranks", "0"}, "--ranks");
  expect_error({"--divide", "rows"}, "--divide");
  expect_error({"--divide", "heads", "--ranks", "1,3"},
               "num_kv_heads is 2, expected a multiple of 3, the number of ranks, to divide heads");
  expect_error({"--kv-heads", "3"}, "num_heads is 2, expected a multiple of num_kv_heads, 3");
}

// The work of processes of mpirun, done by threads.
constexpr AttentionShapes kFewTokens{.num_heads = 2,
                                     .num_kv_heads = 1,
                                     .q_len = 1100,
                                     .kv_len = 1100,
                                     .head_dim = 8,
                                     .value_dim = 8};

// Returns the measurement of the first rank; the last of three ranks have no tokens.
cli::MeasuredRanks measured(const cli::DividedCase& one, int size, int threads) {
  cli::MeasuredRanks found;
  run_thread_ranks(size, [&](Communicator& ranks) {
    cli::Progress progress(1);
    const cli::MeasuredRanks mine = cli::measure_ranks_there_are(ranks, one, threads, 2, progress);
    if (ranks.rank() == 0) found = mine;
  });
  set_num_threads(0);
  return found;
}

TEST(MeasuredRanks, AreLedByTheFirst) {
  for (const bool is_backward : {false, true}) {
    const cli::DividedCase one{is_backward, kFewTokens, "causal"};
    const cli::MeasuredRanks found = measured(one, 3, 1);
    EXPECT_EQ(found.size, 3);
    EXPECT_EQ(found.threads, 1);
    EXPECT_EQ(found.timing.repetitions, 2);
    EXPECT_GT(found.timing.median, 0);
    EXPECT_GT(found.waiting_share, 0);
    EXPECT_LT(found.waiting_share, 1);
    EXPECT_EQ(found.row(one).at("case").at("pass"), is_backward ? "backward" : "forward");
  }
}

TEST(MeasuredRanks, OneProcessIsMeasuredWhereItHasTheProcessors) {
  const cli::DividedCase one{false, kFewTokens, "none"};
  const cli::MeasuredRanks alone = measured(one, 1, 1);
  ASSERT_TRUE(alone.one_process_seconds);
  EXPECT_DOUBLE_EQ(alone.row(one).at("efficiency").get<double>(),
                   *alone.one_process_seconds / alone.timing.median);
  const auto processors = static_cast<int>(std::thread::hardware_concurrency());
  const cli::MeasuredRanks many = measured(one, 2, processors);
  EXPECT_FALSE(many.one_process_seconds);
  EXPECT_TRUE(many.row(one).at("one_process_ms").is_null());
  EXPECT_TRUE(many.row(one).at("efficiency").is_null());
}

TEST(MeasuredRanks, WhatFailsOnAllIsThrownByAll) {
  cli::DividedCase one{false, kFewTokens, "none"};
  one.shapes.num_kv_heads = 3;
  EXPECT_THAT([&] { measured(one, 2, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("expected a multiple")));
}

}  // namespace
}  // namespace heed
