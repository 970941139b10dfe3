#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/command.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using testing_support::TinyModel;

void expect_heads_error(int exit_code, std::vector<std::string> arguments,
                        const std::string& text) {
  arguments.insert(arguments.begin(), "heads");
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr(text));
}

TEST(HeadsCommand, OptionsAreCheckedBeforeAnythingIsRead) {
  const TemporaryFolder folder;
  const auto error = [](std::vector<std::string> arguments, const std::string& text) {
    arguments.insert(arguments.begin(), {"--model", "/nowhere"});
    expect_heads_error(2, arguments, text);
  };
  expect_heads_error(2, {}, "--model is required");
  error({"--pieces", "0"}, "--pieces is 0, expected 1 to 1000");
  error({"--pieces", "1", "--pair"}, "--pieces is 1, expected 2 to 1000");
  error({"--draws", "101"}, "--draws is 101, expected 0 to 100");
  error({"--out", folder / "a.gif"}, "--out");
  error({"--ablate", "5.x"}, "--ablate: '5.x' is no head, expected LAYER.HEAD such as 5.3");
  error({"--ablate", "5"}, "'5' is no head");
  error({"--ablate", "1.2,"}, "'' is no head");
  error({"--ablate", "1.-2"}, "'1.-2' is no head");
  error({"--ablate", "99999999999999999999.1"}, "is no head");
  error({"--ablate", "reading"},
        "--ablate: 'reading' is neither a list of heads such as 5.3,7.1 nor one of: previous "
        "token, next token,");
  EXPECT_EQ(folder.num_files(), 0U);
}

class HeadsOfModels : public testing::Test {
 protected:
  HeadsOfModels() {
    std::ofstream(text_) << "w3 w1 w4 w1 w5 w9 w2\n\nw6 w5 w3 w5 w8\n\nw1 w2 w3 w4 w5 w6 w7 w8\n";
  }

  // Runs on few tokens, because the models have 64 positions.
  CommandResult run(const TinyModel& model, std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), {"heads", "--model", model.folder().string(), "--text",
                                         text_, "--random", "7", "--repeats", "3"});
    return run_command(arguments);
  }
  json parsed(const TinyModel& model, std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const CommandResult result = run(model, arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return json::parse(result.out);
  }

  TemporaryFolder folder_;
  std::string text_ = folder_ / "text";
  TinyModel decoder_{models::Family::kLlama};
  TinyModel encoder_{models::Family::kBert};
};

TEST_F(HeadsOfModels, JsonHasEveryHead) {
  const json found = parsed(decoder_, {});
  EXPECT_EQ(found["family"], "llama");
  EXPECT_EQ(found["text"]["texts"], 1);
  EXPECT_EQ(found["text"]["patterns"].size(), 8U);
  ASSERT_EQ(found["repeated"]["patterns"].size(), 2U);
  const json& induction = found["repeated"]["patterns"][1];
  EXPECT_EQ(induction["name"], "induction");
  EXPECT_EQ(induction["threshold"], 0.4);
  ASSERT_EQ(induction["scores"].size(), 2U);
  ASSERT_EQ(induction["scores"][1].size(), 4U);
  EXPECT_EQ(induction["rows"][1][3], 4 * 14);
  EXPECT_EQ(found["repeated"]["ids"].size(), 4U);
  EXPECT_FALSE(found.contains("ablation"));
}

TEST_F(HeadsOfModels, ATableForEachPattern) {
  const CommandResult result = run(decoder_, {});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              AllOf(StartsWith("model     " + decoder_.folder().string() +
                               ": llama, 2 layers of 4 heads\nread      1 pieces of " + text_),
                    HasSubstr("\nprevious token: looks at the token before\nabove 0.5 (Clark et "
                              "al. 2019: more than half of the attention)\n"),
                    HasSubstr("\nnext token: looks at the token behind\nabove 0.5 (Clark et al. "
                              "2019: more than half of the attention)\n  no head: what was read "
                              "has no such keys\n"),
                    HasSubstr("\npositional: "), Not(HasSubstr("switched off"))));
  std::istringstream lines(result.out.substr(result.out.find("named")));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 84U) << line;
}

// A piece of a pair has at least 400 bytes.
TEST_F(HeadsOfModels, PairsAreReadTogether) {
  std::ofstream text(folder_ / "pairs");
  for (int paragraph = 0; paragraph < 5; ++paragraph) {
    text << std::string(390, ' ') << "w1 w2 w3 w4\n\n";
    text << "w1" << std::string(400, ' ') << "w2\n\n";
  }
  text.close();
  const CommandResult result =
      run_command({"heads", "--model", encoder_.folder().string(), "--text", folder_ / "pairs",
                   "--random", "7", "--repeats", "3", "--pieces", "5", "--pair", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const json found = json::parse(result.out);
  EXPECT_EQ(found["text"]["texts"], 2);
  // [CLS] and the words of two pieces, each followed by [SEP].
  EXPECT_EQ(found["text"]["ids"][0], json::parse("[1,5,6,7,8,5,6,2,5,6,7,8,5,6,2]"));
  EXPECT_THAT(found["read"].get<std::string>(), StartsWith("2 pairs of "));
}

TEST_F(HeadsOfModels, HeadsAreSwitchedOff) {
  const json found = parsed(decoder_, {"--ablate", "1.3,0.1", "--draws", "2"});
  const json& ablation = found["ablation"];
  EXPECT_EQ(ablation["chosen"]["heads"],
            json::parse(R"([{"layer":0,"head":1},{"layer":1,"head":3}])"));
  EXPECT_EQ(ablation["random"].size(), 2U);
  EXPECT_NE(ablation["chosen"]["text_loss"], ablation["all"]["text_loss"]);
  EXPECT_NEAR(ablation["all"]["cosine"].get<double>(), 1, 1e-6);
  EXPECT_THAT(run(decoder_, {"--ablate", "1.3,0.1", "--draws", "2"}).out,
              AllOf(HasSubstr("\nswitched off: 2 of 8 heads: 0.1, 1.3\n"),
                    HasSubstr("without 2 others, 2 draws\n  loss on the text, nats"),
                    HasSubstr("\n  loss on what repeats, nats"),
                    HasSubstr("\n  cosine of final vectors              1.0000")));
  const CommandResult encoder = run(encoder_, {"--ablate", "0.1", "--draws", "0"});
  EXPECT_THAT(encoder.out, AllOf(HasSubstr("without\n  cosine of final vectors"),
                                 Not(HasSubstr("loss")), Not(HasSubstr("±"))));
}

TEST_F(HeadsOfModels, ANameThatNoHeadHas) {
  const CommandResult result = run(encoder_, {"--ablate", "induction"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out,
              HasSubstr("\nswitched off: nothing, for no head is named \"induction\"\n"));
}

TEST_F(HeadsOfModels, AreDrawn) {
  for (const auto& [name, start] : {std::pair{"m.svg", "<?xml"}, {"m.json", "{"}}) {
    const CommandResult result = run(decoder_, {"--out", folder_ / name});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(read_text(folder_ / name), StartsWith(start));
  }
  const std::string picture = read_text(folder_ / "m.svg");
  EXPECT_THAT(picture, AllOf(HasSubstr("<title>What the heads of heed-model"),
                             HasSubstr("fill=\"#ffffff\"")));
  EXPECT_EQ(run(decoder_, {"--out", folder_ / "d.svg", "--dark"}).exit_code, 0);
  EXPECT_THAT(read_text(folder_ / "d.svg"), Not(HasSubstr("fill=\"#ffffff\"")));
}

TEST_F(HeadsOfModels, PatternsWithoutRowsAreNotDrawn) {
  for (const TinyModel* model : {&decoder_, &encoder_}) {
    ASSERT_EQ(run(*model, {"--out", folder_ / "m.html"}).exit_code, 0);
    const std::string page = read_text(folder_ / "m.html");
    EXPECT_THAT(page, AllOf(HasSubstr("<p>previous token"), HasSubstr("<p>first token"),
                            Not(HasSubstr("punctuation")), Not(HasSubstr("same word"))));
    EXPECT_EQ(page.find("<p>next token") == page.npos, model == &decoder_);
  }
}

TEST_F(HeadsOfModels, WhatDoesNotFitIsNamed) {
  const CommandResult heads = run(decoder_, {"--ablate", "2.0"});
  EXPECT_EQ(heads.exit_code, 2);
  EXPECT_THAT(heads.err,
              AllOf(StartsWith("heed heads: --ablate: there is no head 2.0, the model has 0.0 to "
                               "1.3\n"),
                    Not(HasSubstr("read,"))));
  EXPECT_EQ(run(decoder_, {"--ablate", "0.4"}).exit_code, 2);
  std::ofstream(folder_ / "empty") << "\n \n";
  expect_heads_error(1, {"--model", decoder_.folder().string(), "--text", folder_ / "empty"},
                     "has 0 paragraphs, expected 1 at least");
  expect_heads_error(1, {"--model", decoder_.folder().string()},
                     "4 times 25 tokens are more than the 63");
}

TEST(HeadsCommand, AModelThatIsNotThere) {
  const TemporaryFolder folder;
  expect_heads_error(1, {"--model", folder / "none"}, "none");
  expect_heads_error(1, {"--model", folder / "none", "--text", folder / "text"}, "cannot read");
}

}  // namespace
}  // namespace heed
