// The verbs that take a trained model, on small models with random weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "heed/io/npy.h"
#include "heed/io/npz.h"
#include "support/child.h"
#include "support/command.h"
#include "support/tiny_model.h"

namespace heed { namespace {

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
  // Causal: the first token sees only itself.
  EXPECT_EQ(json.at("weights")[1][3][0][0], 1.0);
  EXPECT_EQ(json.at("weights")[1][3][0][5], 0.0);
}

TEST(TrainedModelVerbs, ExplainWritesFiles) {
  const TinyModel llama(models::Family::kLlama);
  const TemporaryFolder folder;
  for (const char* name : {"a.svg", "a.html", "a.npy", "a.json", "a.npz", "a.txt"}) {
    const std::string path = folder / name;
    const CommandResult result =
        run_command({"explain", "--model", llama.folder(), "--out", path, kText});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out, AllOf(HasSubstr(std::string(name) + "'\n"), Not(HasSubstr("Head 0"))));
  }
  const auto arrays = read_npz(folder / "a.npz");
  EXPECT_EQ(shape(arrays.at("weights")), (Shape{2, 4, 6, 6}));
  EXPECT_EQ(shape(arrays.at("visible")), (Shape{6, 6}));
  EXPECT_EQ(shape(arrays.at("token_ids")), (Shape{6}));
  EXPECT_THAT(read_text(folder / "a.txt"), HasSubstr("Head 3"));
  EXPECT_EQ(shape(read_npy(folder / "a.npy")), (Shape{2, 4, 6, 6}));
  EXPECT_THAT(read_text(folder / "a.html"), HasSubstr("LlamaForCausalLM"));
}

// Each verb names the verb that reads the model.
TEST(TrainedModelVerbs, AModelOfAnotherKindOrNoneNamesWhatToDo) {
  const TinyModel bert(models::Family::kBert);
  const TemporaryFolder folder;
  const std::string run = folder / "copy";
  ASSERT_EQ(run_command({"train", "copy", "--steps", "1", "--save", run}).exit_code, 0);
  expect_refused({"diagnose", "--model", bert.folder()}, 1, "`heed heads --model '");
  for (const std::vector<std::string>& verb :
       {std::vector<std::string>{"explain", kText}, {"heads"}, {"embed", kText}}) {
    std::vector<std::string> arguments = verb;
    arguments.insert(arguments.end(), {"--model", "all-MiniLM-L6-v2"});
    expect_refused(arguments, 1, "there is no 'all-MiniLM-L6-v2', expected a folder");
    expect_refused(arguments, 1, "`make models`");
    arguments.back() = run;
    expect_refused(arguments, 1, "was saved by `heed train`");
  }
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
  expect_refused(
      {"explain", "--model", "/nowhere", "--out", "a.gif", kText}, 2,
      "--out: 'a.gif' does not end in .png, .svg, .pdf, .html, .json, .npy, .npz or .txt");
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

// The contents of standard input.
class Input {
 public:
  explicit Input(const std::string& text) { std::ofstream(path()) << text; }
  std::string path() const { return folder_ / "in"; }

 private:
  TemporaryFolder folder_;
};

TEST(TrainedModelVerbs, GenerateReadsItsPromptFromStandardInput) {
  const TinyModel llama(models::Family::kLlama);
  const std::string path = llama.folder();
  const Input input("w1 w2\nw3\r\n");
  const std::vector<std::string> plain{"generate", "--model", path, "--tokens", "2", "--json"};
  const auto prompt = [&](std::vector<std::string> more, const std::string& in) {
    std::vector<std::string> arguments = plain;
    arguments.insert(arguments.end(), more.begin(), more.end());
    const CommandResult result = run_command(arguments, {}, "", in);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("prompt").get<std::string>();
  };
  EXPECT_EQ(prompt({}, input.path()), "w1 w2\nw3");
  EXPECT_EQ(prompt({"-"}, input.path()), "w1 w2\nw3");
  EXPECT_EQ(prompt({"--prompt", "-"}, input.path()), "w1 w2\nw3");
  EXPECT_EQ(prompt({"w5"}, input.path()), "w5");
  EXPECT_EQ(prompt({"--prompt", "w5"}, input.path()), "w5");
  EXPECT_EQ(prompt({}, "/dev/null"), "The ");
  const CommandResult empty = run_command(plain, {}, "", Input("\n").path());
  EXPECT_EQ(empty.exit_code, 2);
  EXPECT_THAT(empty.err, HasSubstr("standard input is empty, expected a text"));
}

TEST(TrainedModelVerbs, OthersReadStandardInputToo) {
  const TinyModel bert(models::Family::kBert);
  const std::string path = bert.folder();
  const CommandResult embedded = run_command({"embed", "--model", path, "--file", "-", "--json"},
                                             {}, "", Input("w1 w2\r\n\nw3").path());
  EXPECT_EQ(nlohmann::json::parse(embedded.out).at("texts"),
            (std::vector<std::string>{"w1 w2", "w3"}));
  const CommandResult explained =
      run_command({"explain", "--model", path, "--json", "-"}, {}, "", Input("w5 w4\n").path());
  EXPECT_EQ(nlohmann::json::parse(explained.out).at("token_ids"),
            (std::vector<std::int64_t>{1, 9, 8, 2}));
  const CommandResult heads =
      run_command({"heads", "--model", path, "--text", "-", "--random", "10", "--json"}, {}, "",
                  Input("w1 w2 w3 w4\n\nw5 w6\n").path());
  EXPECT_EQ(heads.exit_code, 0) << heads.err;
}

TEST(TrainedModelVerbs, GenerateShowsNoPromptThatItCannotRead) {
  const TinyModel llama(models::Family::kLlama);
  std::string text;
  for (int i = 0; i < 70; ++i) text += "w1 ";
  const CommandResult result = run_command({"generate", "--model", llama.folder(), text});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("the prompt has 72 tokens, the model's positions are 64"));
}

TEST(TrainedModelVerbs, GenerateFramesAMessageWhoseWordsAreNoSpecialTokens) {
  const TinyModel llama(models::Family::kLlama);
  llama.write("tokenizer_config.json", R"({"chat_template":
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"})");
  const std::vector<std::string> plain{"generate", "--model", llama.folder(), "--chat",
                                       "--tokens", "1",       "--json"};
  const auto num_tokens = [&](const std::string& message) {
    std::vector<std::string> arguments = plain;
    arguments.push_back(message);
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out).at("prompt_tokens").get<int>();
  };
  // In a user's text "[SEP]" is not special: it is "[", "SEP" and "]".
  EXPECT_EQ(num_tokens("w1 [SEP]"), num_tokens("w1") + 3);
}

// A template whose words the tiny tokenizer has; "w9" ends an answer.
void write_chat_template(const TinyModel& model) {
  model.write("tokenizer_config.json", R"({"chat_template":
    "{% for message in messages %}{% if message.role == 'system' %}w8 {% endif %}{{ message.content }}{% if message.role == 'assistant' %} [SEP]{% endif %} {% endfor %}w7"})");
}

TEST(TrainedModelVerbs, EachLineOfStandardInputIsATurn) {
  const TinyModel llama(models::Family::kLlama);
  write_chat_template(llama);
  const Input input("w1 w2\n\nw3\r\n/reset\nw1 w2\n/exit\nw5\n");
  const CommandResult result =
      run_command({"generate", "--model", llama.folder(), "--chat", "--system", "w6",
                   "--temperature", "0", "--tokens", "2", "--json"},
                  {}, "", input.path());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::vector<nlohmann::json> turns;
  std::istringstream lines(result.out);
  for (std::string line; std::getline(lines, line);) turns.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(turns.size(), 3U);
  EXPECT_EQ(turns[0].at("prompt"), "w1 w2");
  EXPECT_EQ(turns[1].at("prompt"), "w3");
  // The second turn has the first as well; after /reset it is forgotten.
  EXPECT_GT(turns[1].at("prompt_tokens").get<int>(), turns[0].at("prompt_tokens").get<int>());
  EXPECT_EQ(turns[2].at("prompt_tokens"), turns[0].at("prompt_tokens"));
  EXPECT_GE(turns[1].at("kept_tokens").get<int>(), 2);
  EXPECT_EQ(turns[2].at("kept_tokens"), 0);
  EXPECT_EQ(turns[2].at("token_ids"), turns[0].at("token_ids"));
}

TEST(TrainedModelVerbs, GenerateWritesSeveralTextsAndLogProbabilities) {
  const TinyModel llama(models::Family::kLlama);
  const Input input("w1 w2\n");
  const std::string path = llama.folder();
  const auto texts = [&](const std::string& seed, const std::string& count) {
    const CommandResult result = run_command(
        {"generate", "--model", path, "--file", input.path(), "--seed", seed, "-n", count,
         "--temperature", "5", "--tokens", "6", "--json", "--log-probs", "--threads", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    std::vector<nlohmann::json> all;
    std::istringstream lines(result.out);
    for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
    return all;
  };
  const auto three = texts("4", "3");
  ASSERT_EQ(three.size(), 3U);
  EXPECT_NE(three[0].at("token_ids"), three[1].at("token_ids"));
  EXPECT_EQ(three[1].at("token_ids"), texts("5", "1")[0].at("token_ids"));
  EXPECT_EQ(three[0].at("prompt"), "w1 w2");
  EXPECT_EQ(three[0].at("log_probs").size(), three[0].at("token_ids").size());
  const CommandResult biased = run_command(
      {"generate", "--model", path, "--logit-bias", "20=1e6", "--tokens", "1", "--min-p", "0.1",
       "--repetition-penalty", "1.1", "--log-probs", "--stop", "w2", "w1"});
  EXPECT_EQ(biased.exit_code, 0) << biased.err;
  EXPECT_THAT(biased.out, testing::MatchesRegex("w1 w16\n +-[0-9.]+  w16\n"));
}

// A prompt whose reading would take many minutes.
TEST(TrainedModelVerbs, CtrlCEndsTheReadingOfAPrompt) {
  const TinyModel llama(models::Family::kLlama);
  nlohmann::json config = nlohmann::json::parse(llama.read("config.json"));
  config["max_position_embeddings"] = 1'000'000;
  llama.write("config.json", config.dump());
  std::string text;
  for (int i = 0; i < 400'000; ++i) text += "w1 ";
  const Input input(text);
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  std::ofstream(out).flush();
  testing_support::Child child({"generate", "--model", llama.folder()}, [&] {
    testing_support::detail::read_from(input.path());
    testing_support::detail::redirect(STDOUT_FILENO, out);
  });
  // The command prints the prompt before it reads it.
  for (int i = 0; i < 60'000 && std::filesystem::file_size(out) == 0; ++i) ::usleep(1000);
  child.send(SIGINT);
  const CommandResult result = child.finish();
  EXPECT_EQ(result.exit_code, 130);
  EXPECT_THAT(result.err, HasSubstr("interrupted while it read the prompt"));
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
  expect_refused({"generate", "--model", path, "--min-p", "2", "w1"}, 2, "--min-p is 2");
  expect_refused({"generate", "--model", path, "--repetition-penalty", "0", "w1"}, 2,
                 "--repetition-penalty is 0");
  expect_refused({"generate", "--model", path, "--logit-bias", "5:1", "w1"}, 2,
                 "--logit-bias is '5:1', expected the id of a token, = and a number");
  expect_refused({"generate", "--model", path, "--system", "w2", "w1"}, 2, "--system goes with");
  expect_refused({"generate", "--model", path, "-n", "2", "--temperature", "0", "w1"}, 2,
                 "-n goes with a --temperature");
  expect_refused({"generate", "--model", path, "-n", "2", "--seal", "w1"}, 2, "--seal goes with");
  expect_refused({"generate", "--model", path, "--prompt", "w1", "w1"}, 2, "the prompt once");
  expect_refused({"generate", "--model", bert.folder(), "w1"}, 1, "does not write");
  expect_refused({"generate", "--model", "/nowhere", "--chat", "w1"}, 2, "--chat goes with");
}

}  // namespace
}  // namespace heed
