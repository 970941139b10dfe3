// The verbs that take a trained model, on small ones with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/io/npy.h"
#include "support/command.h"
#include "support/tiny_model.h"

namespace heed {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::CommandResult;
using testing_support::read_text;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using testing_support::TinyModel;

constexpr const char* kText = "w1 w2 w3 w1";

void expect_refused(const std::vector<std::string>& arguments, int code, const std::string& text) {
  const CommandResult result = run_command(arguments);
  EXPECT_EQ(result.exit_code, code) << result.err;
  EXPECT_THAT(result.err, HasSubstr(text));
}

TEST(TrainedModelVerbs, ExplainShowsALayerOfAModel) {
  const TinyModel bert(models::Family::kBert);
  const CommandResult result =
      run_command({"explain", "--model", bert.folder(), "--layer", "0", kText});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, AllOf(HasSubstr("BertModel, 2 layers of 3 heads"),
                                HasSubstr("6 tokens; layer"), HasSubstr("[CLS]")));
}

TEST(TrainedModelVerbs, ExplainGivesAllWeightsAsNumbers) {
  const TinyModel llama(models::Family::kLlama);
  const CommandResult result = run_command({"explain", "--model", llama.folder(), "--json", kText});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const nlohmann::json json = nlohmann::json::parse(result.out);
  EXPECT_EQ(json.at("tokens").size(), 6U);
  ASSERT_EQ(json.at("weights").size(), 2U);
  ASSERT_EQ(json.at("weights")[0].size(), 4U);
  // Causal: the first token sees itself alone.
  EXPECT_EQ(json.at("weights")[1][3][0][0], 1.0);
  EXPECT_EQ(json.at("weights")[1][3][0][5], 0.0);
}

TEST(TrainedModelVerbs, ExplainWritesFiles) {
  const TinyModel llama(models::Family::kLlama);
  const TemporaryFolder folder;
  for (const char* name : {"a.svg", "a.html", "a.npy", "a.json"}) {
    const std::string path = folder / name;
    const CommandResult result =
        run_command({"explain", "--model", llama.folder(), "--out", path, kText});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  }
  EXPECT_EQ(shape(read_npy(folder / "a.npy")), (Shape{2, 4, 6, 6}));
  EXPECT_THAT(read_text(folder / "a.html"), HasSubstr("LlamaForCausalLM"));
}

TEST(TrainedModelVerbs, ExplainReadsPairs) {
  const TinyModel bert(models::Family::kBert);
  const CommandResult result =
      run_command({"explain", "--model", bert.folder(), "--json", "--pair", "w5", "w4"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(nlohmann::json::parse(result.out).at("token_ids"),
            (std::vector<std::int64_t>{1, 8, 2, 9, 2}));
}

TEST(TrainedModelVerbs, ExplainRefusesWhatDoesNotGoTogether) {
  const TinyModel bert(models::Family::kBert);
  const std::string path = bert.folder();
  expect_refused({"explain", "--model", path, "--heads", "2", kText}, 2, "--heads does not go");
  expect_refused({"explain", "--model", path, "--layer", "2", kText}, 2,
                 "--layer is 2, the model has 0 to 1");
  expect_refused({"explain", "--model", path, "--head", "3", kText}, 2,
                 "--head is 3, the model has 0 to 2");
  expect_refused({"explain", "--layer", "1", kText}, 2, "--layer goes with --model");
  expect_refused({"explain", "--model", "/nowhere", kText}, 1, "/nowhere");
  expect_refused({"explain", "--model", "/nowhere", "--out", "a.gif", kText}, 2,
                 "--out: 'a.gif' does not end in .png, .svg, .pdf, .html, .json or .npy");
}

TEST(TrainedModelVerbs, EmbedSaysWhichTextsAreClose) {
  const TinyModel bert(models::Family::kBert);
  const TemporaryFolder folder;
  const std::string path = folder / "v.npy";
  const CommandResult result = run_command(
      {"embed", "--model", bert.folder(), "--out", path, "w1 w2", "w1 w2 w1", "w30 w31 w32"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("3 texts, vectors of 24 numbers"));
  EXPECT_EQ(shape(read_npy(path)), (Shape{3, 24}));
  const CommandResult json = run_command({"embed", "--model", bert.folder(), "--json", "w1"});
  EXPECT_EQ(nlohmann::json::parse(json.out).at("vectors")[0].size(), 24U);
  expect_refused({"embed", "--model", bert.folder()}, 2, "expected either texts or --file");
  expect_refused({"embed", "--model", bert.folder(), "--out", "v.txt", "w1"}, 2, ".npy");
}

TEST(TrainedModelVerbs, GenerateWritesATextAndSaysHowFast) {
  const TinyModel llama(models::Family::kLlama);
  const std::string path = llama.folder();
  const CommandResult result =
      run_command({"generate", "--model", path, "--tokens", "5", "--seed", "1", "w1 w2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, testing::StartsWith("w1 w2"));
  EXPECT_THAT(result.err, HasSubstr("read 4 tokens in"));
  const CommandResult json =
      run_command({"generate", "--model", path, "--tokens", "5", "--temperature", "0", "--cache",
                   "float16", "--json", "w1 w2"});
  const nlohmann::json text = nlohmann::json::parse(json.out);
  EXPECT_EQ(text.at("prompt"), "w1 w2");
  EXPECT_LE(text.at("token_ids").size(), 5U);
}

TEST(TrainedModelVerbs, GenerateRefusesWhatDoesNotGoTogether) {
  const TinyModel llama(models::Family::kLlama);
  const TinyModel bert(models::Family::kBert);
  const std::string path = llama.folder();
  expect_refused({"generate", "--model", path, "--cache", "float8", "w1"}, 2,
                 "--cache is 'float8'");
  expect_refused({"generate", "--model", path, "--beam", "2", "w1"}, 2, "--beam goes with");
  expect_refused({"generate", "--model", path, "--top-p", "0", "w1"}, 2, "--top-p is 0");
  expect_refused({"generate", "--model", path, "--chat", "w1"}, 1, "template");
  expect_refused({"generate", "--model", path, "--prompt", "w1", "w1"}, 2, "the prompt once");
  expect_refused({"generate", "--model", bert.folder(), "w1"}, 1, "does not write");
  expect_refused({"generate", "--model", "/nowhere", "--chat", "w1"}, 2, "--chat goes with");
}

}  // namespace
}  // namespace heed
