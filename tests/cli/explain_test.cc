#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <sstream>

#include "heed/io/npy.h"
#include "heed/io/npz.h"
#include "heed/viz/layout.h"
#include "support/command.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::elements_of;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;

using Weights = std::vector<std::vector<std::vector<double>>>;

constexpr const char* kSentence = "The cat sat on the mat";

nlohmann::json explain_json(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "explain");
  arguments.emplace_back("--json");
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return nlohmann::json::parse(result.out);
}

Weights weights_of(const std::vector<std::string>& arguments) {
  return explain_json(arguments).at("weights").get<Weights>();
}

void expect_explain_refuses(const std::vector<std::string>& options, const std::string& text) {
  std::vector<std::string> arguments{"explain", kSentence};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 2) << text;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("heed explain: "), HasSubstr(text)));
}

std::string words(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "word" + std::to_string(i) + ' ';
  return text + "end";
}

TEST(Explain, DrawsWhatTheDemoDraws) {
  const auto demo = run_command({"demo"}).out;
  const auto explained = run_command({"explain", kSentence}).out;
  const std::size_t begin = explained.find("Head 0");
  const std::size_t end = explained.find("\n\nA row");
  EXPECT_THAT(demo, HasSubstr(explained.substr(begin, end - begin)));
}

TEST(Explain, QuotesMayBeForgotten) {
  EXPECT_EQ(run_command({"explain", "The", "cat"}).out, run_command({"explain", "The cat"}).out);
}

TEST(Explain, WhitespaceAroundTheSentenceIsDropped) {
  EXPECT_EQ(explain_json({" The cat\n"}), explain_json({"The cat"}));
}

TEST(Explain, JsonHoldsTokensSettingsAndWeights) {
  const auto json =
      explain_json({kSentence, "--heads", "2", "--d-model", "8", "--seed", "7", "--temperature",
                    "0.5", "--mask", "causal & sliding_window(2, 0)", "--no-position"});
  EXPECT_EQ(json.at("sentence"), kSentence);
  EXPECT_EQ(json.at("tokens"), (std::vector<std::string>{"The", "cat", "sat", "on", "the", "mat"}));
  EXPECT_EQ(json.at("token_ids").size(), 6U);
  EXPECT_EQ(json.at("settings"), nlohmann::json({{"num_heads", 2},
                                                 {"d_model", 8},
                                                 {"seed", 7},
                                                 {"mask", "causal & sliding_window(2, 0)"},
                                                 {"temperature", 0.5},
                                                 {"has_positions", false}}));
  const auto weights = json.at("weights").get<Weights>();
  ASSERT_EQ(weights.size(), 2U);
  ASSERT_EQ(weights[0].size(), 6U);
  for (const auto& row : weights[1])
    EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-6);
  EXPECT_EQ(weights[0][5][2], 0);
  EXPECT_GT(weights[0][5][3], 0);
}

TEST(Explain, MasksDecideWhoIsSeen) {
  const auto none = weights_of({kSentence, "--mask", "none"});
  EXPECT_GT(none[0][0][5], 0);
  const auto prefixed = weights_of({kSentence, "--mask", "prefix(3)"});
  EXPECT_GT(prefixed[0][0][2], 0);
  EXPECT_EQ(prefixed[0][0][3], 0);
  const auto window = weights_of({kSentence, "--mask", "sliding_window(unbounded, 1)"});
  EXPECT_GT(window[0][2][3], 0);
  EXPECT_EQ(window[0][2][4], 0);
}

TEST(Explain, ALowTemperatureSharpens) {
  const auto sharp = weights_of({kSentence, "--temperature", "0.01"});
  const auto even = weights_of({kSentence, "--temperature", "1000"});
  EXPECT_GT(*std::max_element(sharp[0][5].begin(), sharp[0][5].end()), 0.99);
  for (const double weight : even[0][5]) EXPECT_NEAR(weight, 1.0 / 6, 1e-2);
}

TEST(Explain, WithoutPositionsEqualTokensAreEqual) {
  const auto weights = weights_of({"no no no", "--no-position", "--mask", "none"});
  for (const double weight : weights[0][0]) EXPECT_NEAR(weight, 1.0 / 3, 1e-6);
  const auto placed = weights_of({"no no no", "--mask", "none"});
  EXPECT_GT(std::abs(placed[0][0][0] - placed[0][0][1]), 1e-3);
}

TEST(Explain, OneHeadAlone) {
  const auto result = run_command({"explain", kSentence, "--head", "2"});
  EXPECT_THAT(result.out, AllOf(HasSubstr("Head 2"), Not(HasSubstr("Head 1"))));
}

TEST(Explain, AnyScript) {
  for (const std::string sentence : {"猫がマットに座った", "Кошка сидела на коврике",
                                     "जब बिल्ली बैठी", "قطة على السجادة", "a 👩‍👩‍👧 b"}) {
    const auto result = run_command({"explain", sentence});
    EXPECT_EQ(result.exit_code, 0) << sentence;
    EXPECT_THAT(result.out, HasSubstr("Head 3"));
    EXPECT_EQ(explain_json({sentence}).at("sentence"), sentence);
  }
}

TEST(Explain, ControlCharactersAreNeverPrintedRaw) {
  const std::string sentence = "a\x1b[31mb \x07 c\u009b5m \u202e d\x7f";
  for (const std::string option : {"--head=0", "--json"}) {
    const auto result = run_command({"explain", sentence, option});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    for (const char* raw : {"\x1b", "\x07", "\u009b", "\u202e", "\x7f"}) {
      EXPECT_THAT(result.out, Not(HasSubstr(raw)));
    }
  }
  EXPECT_EQ(explain_json({sentence}).at("sentence"), sentence);
}

TEST(Explain, OneToFiveHundredAndTwelveTokens) {
  EXPECT_EQ(run_command({"explain", "Hi"}).exit_code, 0);
  EXPECT_EQ(run_command({"explain", words(511)}).exit_code, 0);
  const auto longer = run_command({"explain", words(512)});
  EXPECT_EQ(longer.exit_code, 1);
  EXPECT_EQ(longer.out, "");
  EXPECT_THAT(longer.err, HasSubstr("heed explain: the sentence has 513 tokens"));
  for (const std::string nothing : {"", "  \n\t "}) {
    const auto result = run_command({"explain", nothing});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_THAT(result.err, HasSubstr("the sentence has no words, expected 1 to 512"));
  }
}

TEST(Explain, InvalidUtf8IsAnError) {
  const auto result = run_command({"explain", "caf\xe9"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_THAT(result.err, HasSubstr("not valid UTF-8"));
}

TEST(Explain, FitsTheWidthWhateverTheLength) {
  for (const int length : {3, 12, 39, 40, 41, 200, 511}) {
    for (const char* columns : {"40", "80", "120"}) {
      const auto result = run_command({"explain", words(length)}, {{"COLUMNS", columns}});
      ASSERT_EQ(result.exit_code, 0);
      std::istringstream lines(result.out);
      for (std::string line; std::getline(lines, line);) {
        ASSERT_LE(terminal_columns(line), std::stoi(columns)) << length << ": " << line;
      }
    }
  }
}

TEST(Explain, BeyondFortyTokensItSummarises) {
  EXPECT_THAT(run_command({"explain", words(39)}).out, Not(HasSubstr("more than fit")));
  EXPECT_THAT(run_command({"explain", words(40)}).out,
              AllOf(HasSubstr("41 tokens are more than fit"),
                    HasSubstr("Head 3: the last token, end, attends most to ")));
}

TEST(Explain, WritesTheFormatThatTheEndingNames) {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name) {
    const auto result = run_command({"explain", kSentence, "--out", folder / name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return folder / name;
  };
  EXPECT_EQ(nlohmann::json::parse(read_text(write("a.json"))), explain_json({kSentence}));

  const AnyTensor weights = read_npy(write("a.npy"));
  EXPECT_EQ(shape(weights), (Shape{4, 6, 6}));
  EXPECT_EQ(dtype_name(weights), "float32");

  const auto arrays = read_npz(write("a.npz"));
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_EQ(elements_of(to_double(arrays.at("weights")))[6], elements_of(to_double(weights))[6]);
  EXPECT_EQ(shape(arrays.at("visible")), (Shape{6, 6}));
  EXPECT_EQ(shape(arrays.at("token_ids")), (Shape{6}));

  EXPECT_THAT(read_text(write("a.txt")), HasSubstr("cat .25 .75  ·   ·   ·   ·    cat .63 .37"));
  EXPECT_THAT(read_text(write("a.html")), StartsWith("<!DOCTYPE html>"));
  EXPECT_EQ(folder.num_files(), 5U);
}

TEST(Explain, BesideAFileItPrintsNoMatrices) {
  const TemporaryFolder folder;
  const auto result = run_command({"explain", kSentence, "--out", folder / "a.html"});
  EXPECT_THAT(result.out, AllOf(StartsWith("6 tokens; 4 heads"), HasSubstr("a.html'\n"),
                                Not(HasSubstr("Head 0"))));
}

TEST(Explain, AtTemperatureZeroARowHasItsLargestWeightAlone) {
  const auto weights = weights_of({kSentence, "--temperature", "1"});
  const auto hard = weights_of({kSentence, "--temperature", "0"});
  for (std::size_t h = 0; h < weights.size(); ++h) {
    for (std::size_t q = 0; q < weights[h].size(); ++q) {
      const auto& row = weights[h][q];
      const auto largest = std::max_element(row.begin(), row.end()) - row.begin();
      for (std::size_t k = 0; k < row.size(); ++k) {
        EXPECT_EQ(hard[h][q][k], static_cast<std::ptrdiff_t>(k) == largest ? 1 : 0);
      }
    }
  }
  const auto equal = weights_of({"no no", "--no-position", "--mask", "none", "--temperature", "0"});
  EXPECT_EQ(equal[0][0], (std::vector<double>{0.5, 0.5}));
}

TEST(Explain, NothingIsWrittenOnError) {
  const TemporaryFolder folder;
  EXPECT_EQ(run_command({"explain", "caf\xe9", "--out", folder / "a.json"}).exit_code, 1);
  EXPECT_EQ(run_command({"explain", "a", "--mask", "x", "--out", folder / "a.json"}).exit_code, 2);
  EXPECT_EQ(folder.num_files(), 0U);
  const auto result = run_command({"explain", "a", "--out", folder / "missing/a.json"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr("missing/a.json"), HasSubstr("No such file")));
}

TEST(Explain, RefusesSettingsThatMakeNoSense) {
  expect_explain_refuses({"--heads", "0"}, "--heads is 0, expected 1 to 64");
  expect_explain_refuses({"--heads", "many"}, "many");
  expect_explain_refuses({"--heads", "3"}, "--d-model is 64, expected a multiple of --heads, 3");
  expect_explain_refuses({"--heads", "3", "--d-model", "9"}, "expected an even number");
  expect_explain_refuses({"--head", "4"}, "--head is 4, expected 0 to 3");
  expect_explain_refuses({"--temperature", "-1"}, "--temperature is -1");
  expect_explain_refuses({"--temperature", "nan"}, "--temperature: 'nan' is not a finite number");
  expect_explain_refuses({"--seed", "-1"}, "--seed");
  expect_explain_refuses(
      {"--out", "a.gif"},
      "'a.gif' does not end in .png, .svg, .pdf, .html, .json, .npy, .npz or .txt");
}

TEST(Explain, RefusesUnknownMasksAndListsTheKnown) {
  expect_explain_refuses({"--mask", "future"},
                         "--mask: there is no mask 'future', expected one of none, causal, ");
  expect_explain_refuses({"--mask", "causal & future"},
                         ", at character 10\n  causal & future\n           ^\n");
  for (const char* mask : {"", "causal &", "prefix()", "prefix(2x)", "sliding_window(3)",
                           "sliding_window(1, -1)", "prefix(-1)", "window:2,0"}) {
    expect_explain_refuses({"--mask", mask}, "--mask");
  }
}

}  // namespace
}  // namespace heed
