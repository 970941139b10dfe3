// The program heed_measure: parts, memory, a simulated cluster, and masks.
#include "support/measure.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "support/command.h"

namespace heed { namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_measure;
using testing_support::TemporaryFolder;
using Arguments = std::vector<std::string>;

json measured(Arguments arguments) {
  arguments.emplace_back("--json");
  const CommandResult result = run_measure(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return json::parse(result.out);
}

void expect_misuse(const Arguments& arguments, const std::string& text) {
  const CommandResult result = run_measure(arguments);
  EXPECT_EQ(result.exit_code, 2) << text;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("heed_measure " + arguments.front() + ": "), HasSubstr(text)));
}

TEST(Measure, HasHelpAndNamesItsVerbs) {
  EXPECT_THAT(run_measure({"--help"}).out,
              AllOf(HasSubstr("parts"), HasSubstr("memory"), HasSubstr("cluster")));
  const CommandResult result = run_measure({"bits"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("heed_measure: there is no verb 'bits'"));
}

TEST(MeasureParts, MeasuresThoseThatAreWanted) {
  const json loops = measured({"parts", "--only", "empty loop", "--repeat", "2"});
  ASSERT_EQ(loops.at("results").size(), 3U);
  EXPECT_EQ(loops.at("results").at(1).at("case").at("part"), "empty loop of 16");
  EXPECT_FALSE(loops.at("results").at(1).contains("rate_over_first"));
  const CommandResult products = run_measure({"parts", "--only", "of 1 rows", "--repeat", "2"});
  EXPECT_EQ(products.exit_code, 0) << products.err;
  EXPECT_THAT(products.out, AllOf(HasSubstr("product of 1 rows, 256"), HasSubstr("GFLOP/s")));
  expect_misuse({"parts", "--only", "nothing"}, "--only: no part has 'nothing' in its name");
}

TEST(MeasureParts, ComparesWithPlainAttention) {
  const json parts = measured({"parts", "--only", "softcap", "--repeat", "1"});
  ASSERT_EQ(parts.at("results").size(), 2U);
  EXPECT_EQ(parts.at("results").at(0).at("case").at("part"), "attention");
  EXPECT_EQ(parts.at("results").at(0).at("rate_over_first"), 1.0);
  const json& softcap = parts.at("results").at(1);
  EXPECT_EQ(softcap.at("beside"), "attention");
  EXPECT_GT(softcap.at("gflops"), 0.0);
}

// The fused kernels allocate one block with aligned operator new.
TEST(MeasureMemory, IsCountedBeyondTheOutput) {
  if (attention_target() == "reference") GTEST_SKIP() << "no fused kernels here";
  const auto bytes = [](const std::string& kv_seq) {
    const json report = measured({"memory", "forward", "--heads", "2", "--head-dim", "64", "--seq",
                                  "200", "--kv-seq", kv_seq, "--threads", "1"});
    return report.at("results").at(0).at("extra_bytes").get<double>();
  };
  const double one = bytes("2053");
  const double scores_of_a_tile = 128 * 12 * 4;
  EXPECT_GT(one, scores_of_a_tile);
  // No memory grows with the keys; malloc's rounding may differ by a few bytes.
  EXPECT_NEAR(bytes("8209"), one, 256);
}

TEST(MeasureMemory, CountsThatOfGradientsToo) {
  const json report = measured({"memory", "backward", "--path", "reference,fused", "--heads", "1",
                                "--seq", "64,128", "--head-dim", "8", "--threads", "1"});
  ASSERT_EQ(report.at("results").size(), 4U);
  for (const json& result : report.at("results")) EXPECT_GT(result.at("extra_bytes"), 0);
  EXPECT_THAT(run_measure({"memory", "forward", "--seq", "9"}).out, HasSubstr("extra bytes"));
  const CommandResult wrong = run_measure({"memory", "forward", "--kv-heads", "3"});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("--heads is 8, expected a multiple of --kv-heads, 3"));
}

TEST(MeasureCluster, ComputesRanksThatAreNotThere) {
  const TemporaryFolder folder;
  const std::string picture = folder / "efficiency.svg";
  const json report =
      measured({"cluster", "--heads", "2", "--head-dim", "8", "--seq", "4096,65536", "--ranks",
                "1,4,64", "--out", picture, "--latency", "100", "--bandwidth", "1"});
  EXPECT_EQ(report.at("latency_us"), 100);
  EXPECT_GT(report.at("pairs_per_s"), 0);
  const json& results = report.at("results");
  ASSERT_EQ(results.size(), 6U);
  EXPECT_EQ(results[0].at("efficiency"), 1);
  EXPECT_EQ(results[3].at("efficiency"), 1);
  for (const json& result : results) EXPECT_LE(result.at("efficiency"), 1.0000001);
  // With longer sequences 64 ranks compute more per message; with 4 segments most compute nothing.
  EXPECT_GT(results[5].at("efficiency"), results[2].at("efficiency"));
  EXPECT_TRUE(std::filesystem::exists(picture));
}

TEST(MeasureCluster, RefusesMisuse) {
  expect_misuse({"cluster", "--out", "picture.txt"}, "--out");
  expect_misuse({"cluster", "--mask", "banana"}, "--mask");
  expect_misuse({"cluster", "--divide", "heads", "--ranks", "3"},
                "num_kv_heads is 8, expected a multiple of 3, the number of ranks");
}

// Returns small sizes, which `more` may replace.
Arguments tiny_masks(const Arguments& more) {
  Arguments arguments{"masks"};
  for (const auto& [name, value] : std::map<std::string, std::string>{{"--context", "16"},
                                                                      {"--timed", "64"},
                                                                      {"--parts", "4"},
                                                                      {"--pairs", "4"},
                                                                      {"--questions", "2"},
                                                                      {"--keys", "4"},
                                                                      {"--gap", "4"},
                                                                      {"--d-model", "8"},
                                                                      {"--heads", "2"},
                                                                      {"--layers", "1"},
                                                                      {"--seeds", "2"},
                                                                      {"--recall-steps", "2"},
                                                                      {"--copy-steps", "2"},
                                                                      {"--text-steps", "2"},
                                                                      {"--reach-steps", "1"}}) {
    if (std::find(more.begin(), more.end(), name) != more.end()) continue;
    arguments.insert(arguments.end(), {name, value});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

TEST(MeasureMasks, MeasuresMoreThanTheCommand) {
  const TemporaryFolder folder;
  const CommandResult result =
      run_measure(tiny_masks({"--kinds", "full,linear", "--out", folder / "numbers.json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("# Masks compared\n"), HasSubstr("\n## Recall, and the heap\n"),
                    HasSubstr("\n| window | 1 layer | 2 layers | 4 layers |\n")));
  EXPECT_THAT(result.err, HasSubstr("linear, seed 1: recall "));
  const json comparison = json::parse(read_text(folder / "numbers.json"));
  EXPECT_EQ(comparison.at("reach").size(), 12U);
  for (const json& of : comparison.at("results")) {
    for (const char* const score : {"recall", "copy", "loss"}) {
      EXPECT_EQ(of.at(score).at("of_seeds").size(), 2U);
    }
    EXPECT_GT(of.at("bytes"), 0);
  }
  EXPECT_EQ(run_measure(tiny_masks({"--kinds", "full", "--out", folder / "x.html"})).exit_code, 0);
  EXPECT_THAT(read_text(folder / "x.html"), HasSubstr("Associative recall"));
}

// A window that ends before the symbols learns nothing about them; one that reaches them copies.
TEST(MeasureMasks, AWindowFailsBeyondItsReach) {
  const json comparison = measured(
      tiny_masks({"--kinds", "full", "--d-model", "32", "--seeds", "1", "--reach-steps", "150"}));
  for (const json& of : comparison.at("reach")) {
    const auto window = of.at("window").get<std::int64_t>();
    const auto layers = of.at("layers").get<std::int64_t>();
    const auto copied = of.at("copy").at("mean").get<double>();
    if (window * layers < comparison.at("reach_distance").get<std::int64_t>()) {
      EXPECT_LT(copied, 0.15) << window << ' ' << layers;
    } else if (window == 16) {
      EXPECT_GT(copied, 0.9) << window << ' ' << layers;
    }
  }
}

TEST(MeasureMasks, NamesWhatIsWrong) {
  expect_misuse(tiny_masks({"--questions", "5"}), "--questions is 5, expected 1 to 4");
  expect_misuse(tiny_masks({"--keys", "3"}), "--keys is 3, expected 4 to 256");
  expect_misuse(tiny_masks({"--recall-steps", "0"}), "--recall-steps is 0");
}

}  // namespace
}  // namespace heed
