// heed compare positions with tiny models: every kind is trained and measured, and a length beyond
// the positions is marked as missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compare/positions_report.h"
#include "heed/models/causal_config.h"
#include "support/child.h"
#include "support/command.h"

namespace heed::cli { namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;
using testing_support::Child;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using Arguments = std::vector<std::string>;

// Returns small sizes, which `more` may replace.
Arguments tiny(const Arguments& more) {
  Arguments arguments{"compare", "positions"};
  for (const auto& [name, value] : std::map<std::string, std::string>{{"--context", "8"},
                                                                      {"--length", "4"},
                                                                      {"--d-model", "8"},
                                                                      {"--heads", "2"},
                                                                      {"--layers", "1"},
                                                                      {"--seeds", "2"},
                                                                      {"--text-steps", "3"},
                                                                      {"--copy-steps", "3"}}) {
    if (std::find(more.begin(), more.end(), name) != more.end()) continue;
    arguments.insert(arguments.end(), {name, value});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

void expect_error(int exit_code, const Arguments& arguments, const std::string& text) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(text));
}

std::vector<std::int64_t> measured_lengths(const json& scores) {
  std::vector<std::int64_t> lengths;
  for (const json& at : scores) {
    EXPECT_EQ(at.at("mean").is_null(), at.at("of_seeds").empty());
    if (!at.at("of_seeds").empty()) lengths.push_back(at.at("length").get<std::int64_t>());
  }
  return lengths;
}

// Expects the additional parameters of each kind, for two heads of four dimensions in one layer.
void expect_parameters_of_each_kind(const json& comparison) {
  const auto added = [&](const char* member) {
    std::map<std::string, std::int64_t> counts;
    std::int64_t none = 0;
    for (const json& of : comparison.at("results")) {
      const auto positions = of.at("positions").get<std::string>();
      counts[positions] = of.at(member).get<std::int64_t>();
      if (positions == "none") none = counts[positions];
    }
    for (auto& count : counts) count.second -= none;
    return counts;
  };
  const std::map<std::string, std::int64_t> expected{
      {"none", 0},  {"sinusoidal", 0}, {"learned", 8 * 8},   {"rotary", 0},
      {"alibi", 0}, {"t5", 2 * 32},    {"shaw", 2 * 65 * 4}, {"clip", 2 * 65}};
  EXPECT_EQ(added("text_parameters"), expected);
  EXPECT_EQ(added("copy_parameters"), expected);
}

TEST(ComparePositions, MeasuresEveryKindAsFarAsItsPositionsGo) {
  const CommandResult result = run_command(tiny({"--json"}));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json comparison = json::parse(result.out);
  std::vector<std::string> kinds;
  for (const json& of : comparison.at("results")) {
    const auto positions = of.at("positions").get<std::string>();
    kinds.push_back(positions);
    const bool ends = positions == "learned";
    using Lengths = std::vector<std::int64_t>;
    EXPECT_EQ(measured_lengths(of.at("loss")), (ends ? Lengths{8} : Lengths{8, 16, 32, 64}));
    const Lengths copied = ends ? Lengths{4} : Lengths{4, 6, 8, 10, 12};
    EXPECT_EQ(measured_lengths(of.at("symbol_accuracy")), copied) << positions;
    EXPECT_EQ(measured_lengths(of.at("exact_match")), copied) << positions;
    for (const json& at : of.at("loss")) {
      EXPECT_EQ(at.at("of_seeds").size(), at.at("mean").is_null() ? 0U : 2U);
    }
  }
  EXPECT_EQ(kinds, models::position_names());
  EXPECT_THAT(result.err, HasSubstr("text, clip, seed 1: loss "));
  expect_parameters_of_each_kind(comparison);
}

TEST(ComparePositions, TheSameSeedsGiveTheSameNumbers) {
  const Arguments some = tiny({"--positions", "rotary,none"});
  const CommandResult once = run_command(some);
  ASSERT_EQ(once.exit_code, 0) << once.err;
  EXPECT_EQ(once.out, run_command(some).out);
  EXPECT_THAT(once.out, StartsWith("# Positions compared\n"));
  EXPECT_THAT(once.out, HasSubstr("| positions | parameters | 8 | 16 | 32 | 64 |\n"));
  EXPECT_THAT(once.out, HasSubstr("\n| rotary | "));
}

// A model that has to copy learns where to look.
TEST(ComparePositions, CopyingIsLearned) {
  const json comparison =
      json::parse(run_command(tiny({"--positions", "shaw", "--d-model", "32", "--layers", "2",
                                    "--seeds", "1", "--copy-steps", "400", "--json"}))
                      .out);
  const json& accuracy = comparison.at("results").at(0).at("symbol_accuracy");
  EXPECT_GT(accuracy.at(0).at("mean").get<double>(), 0.5);
}

TEST(ComparePositions, DrawsWhatItMeasured) {
  const TemporaryFolder folder;
  for (const std::string name : {"numbers.json", "picture.svg", "picture.png", "page.html"}) {
    const CommandResult result =
        run_command(tiny({"--positions", "learned,alibi", "--out", folder / name}));
    ASSERT_EQ(result.exit_code, 0) << result.err;
  }
  const json numbers = json::parse(read_text(folder / "numbers.json"));
  EXPECT_EQ(numbers.at("results").size(), 2U);
  EXPECT_THAT(read_text(folder / "picture.svg"), HasSubstr("<svg"));
  EXPECT_THAT(read_text(folder / "picture.png"), StartsWith("\x89PNG"));
  EXPECT_THAT(read_text(folder / "page.html"), HasSubstr("alibi"));
}

TEST(ComparePositions, NamesWhatIsWrong) {
  const TemporaryFolder folder;
  expect_error(2, tiny({"--positions", "some"}),
               "--positions: 'some' is none of none, sinusoidal, ");
  expect_error(2, tiny({"--seeds", "0"}), "--seeds is 0, expected 1 to 100");
  expect_error(2, tiny({"--context", "300"}), "--context is 300, expected 2 to 256");
  expect_error(2, tiny({"--d-model", "9"}), "--d-model is 9, expected a multiple of --heads, 2");
  expect_error(2, tiny({"--d-model", "6"}), "expected an even number for rotary positions");
  expect_error(2, tiny({"--out", folder / "x.csv"}), "does not end in .png, .svg, .pdf");
  expect_error(2, {"compare", "--epochs", "3", "positions"}, "--epochs");
  expect_error(1, tiny({"--text", folder / "missing"}), "missing");
  std::ofstream(folder / "short") << std::string(259, 'a');
  expect_error(1, tiny({"--text", folder / "short"}),
               "the text has 259 characters, of which the last quarter is held out, expected at "
               "least 260");
  EXPECT_EQ(folder.num_files(), 1U);
}

TEST(ComparePositions, CtrlCEndsIt) {
  const TemporaryFolder folder;
  Child child(tiny({"--copy-steps", "1000000", "--out", folder / "x.svg"}));
  child.wait_for("seed 0");  // the text of the first kind has been learned
  child.send(SIGINT);
  EXPECT_EQ(child.finish().exit_code, 130);
  EXPECT_EQ(folder.num_files(), 0U);
}

// Returns a result with these losses and symbol accuracies at two lengths; negative values mean
// that the second length is missing.
PositionsResult result_of(const std::string& positions, double short_loss, double long_loss,
                          double short_copy, double long_copy) {
  const auto scores = [](double first, double last) -> std::vector<ScoreAtLength> {
    if (last < 0) return {{8, {{first}}}, {16, {}}};
    return {{8, {{first}}}, {16, {{last}}}};
  };
  return {.positions = positions,
          .loss = scores(short_loss, long_loss),
          .symbol_accuracy = scores(short_copy, long_copy),
          .exact_match = scores(short_copy, long_copy)};
}

TEST(PositionsReport, RanksLossesUpwardsAndAccuraciesDownwards) {
  PositionsComparison comparison;
  comparison.settings.context = 8;
  comparison.settings.length = 4;
  comparison.results = {result_of("none", 2.0, 3.0, 0.5, 0.9), result_of("learned", 1.0, -1, 1, -1),
                        result_of("alibi", 1.5, 1.5, 1, 0.1)};
  const std::string text = to_markdown(comparison);
  EXPECT_THAT(text, HasSubstr("| none | 3 | 2 | 3 | 1 |\n"));
  EXPECT_THAT(text, HasSubstr("| learned | 1 | – | 1 | – |\n"));
  EXPECT_THAT(text, HasSubstr("| alibi | 2 | 1 | 1 | 2 |\n"));
}

TEST(PositionsReport, MeanAndDeviationOfSeeds) {
  const SeedScores scores{{1, 2, 6}};
  EXPECT_DOUBLE_EQ(scores.mean(), 3);
  EXPECT_DOUBLE_EQ(scores.deviation() * scores.deviation(), 7);
  EXPECT_EQ(SeedScores{{1}}.deviation(), 0);
}

}  // namespace
}  // namespace heed::cli
