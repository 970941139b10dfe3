// JSON files that heed did not write, of each kind that the command reads: errors are heed's own,
// and no exception of the JSON library escapes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "heed/io/safetensors.h"
#include "support/command.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::run_command;
using testing_support::TemporaryFolder;
using Arguments = std::vector<std::string>;

constexpr const char* kNoSettings = "does not hold the settings of a model of heed";

std::string nested(int depth) {
  return std::string(static_cast<std::size_t>(depth), '[') +
         std::string(static_cast<std::size_t>(depth), ']');
}

// Returns settings of a model of `task` with an error in every member that is read.
std::vector<std::string> wrong_settings(const std::string& task) {
  const std::string begin = R"({"task":")" + task + "\"";
  const std::string training =
      R"(,"training":{"steps":1,"batch":1,"learning_rate":0.1,"seed":0,"save_every":1})";
  const std::string model =
      R"(,"model":{"vocab_size":1,"context":4,"layers":1,"d_model":2,"heads":1,"positions":"none"})";
  return {
      "",
      "{",
      "\xFF",
      "1e999",
      "3",
      "[]",
      "{}",
      R"({"task":3})",
      R"({"task":null})",
      begin + "}",
      begin + R"(,"training":3,"model":3})",
      begin + R"(,"training":{"steps":"x"},"model":{"vocab_size":[]}})",
      begin +
          R"(,"training":{"steps":1e22,"batch":1,"learning_rate":0.1,"seed":0,"save_every":1}})",
      begin + training + R"(,"epochs":{},"patience":1,"corpus":[],"model":{}})",
      begin + training + model + R"(,"characters":3,"text":3})",
      begin + training + model + "}",
      begin + training + model + R"(,"characters":")" + "\xFF" + R"(","text":"x"})",
      begin + training + model + R"(,"text":"x","characters":"x","more":)" + nested(100000) + "}"};
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void expect_problem(const Arguments& arguments, const std::string& file, const char* problem,
                    const std::string& text) {
  const auto result = run_command(arguments);
  EXPECT_EQ(result.exit_code, 1) << text.substr(0, 300);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, AllOf(HasSubstr(file), HasSubstr(problem), Not(HasSubstr("json.exc"))))
      << text.substr(0, 300);
}

TEST(JsonText, OfALanguageModel) {
  const TemporaryFolder folder;
  const std::string file = folder / "model.safetensors";
  for (const std::string& text : wrong_settings("lm")) {
    if (text.find('\xFF') == text.npos) {
      write_safetensors(file, {}, {{"settings", text}});
      expect_problem({"generate", "--model", folder / ""}, file, kNoSettings, text);
      expect_problem({"diagnose", "--model", folder / ""}, file, kNoSettings, text);
    }
  }
}

TEST(JsonText, OfACheckpoint) {
  const TemporaryFolder folder;
  const std::string file = folder / "checkpoint.safetensors";
  for (const std::string task : {"lm", "copy"}) {
    for (const std::string& text : wrong_settings(task)) {
      const bool is_taken = task == "copy" && text.find("positions") != text.npos;
      if (text.find('\xFF') != text.npos || is_taken) continue;
      write_safetensors(file, {}, {{"settings", text}});
      expect_problem({"train", task, "--resume", folder / ""}, file, kNoSettings, text);
    }
  }
}

TEST(JsonText, OfATranslator) {
  const TemporaryFolder folder;
  for (const std::string& text : wrong_settings("translate")) {
    write_text(folder / "settings.json", text);
    expect_problem({"translate", "--model", folder / "", "one"}, folder / "settings.json",
                   kNoSettings, text);
  }
}

// A stopped run whose checkpoint has something else than epochs.
TEST(JsonText, OfVocabulariesAndOfWhatARunRemembers) {
  const TemporaryFolder folder;
  const Arguments train{"train",    "translate", "--examples", "20",          "--held-out",
                        "4",        "--d-model", "4",          "--heads",     "1",
                        "--epochs", "1",         "--save",     folder / "run"};
  ASSERT_EQ(run_command(train).exit_code, 0) << run_command(train).err;
  const std::string checkpoint = folder / "run/checkpoint.safetensors";
  Safetensors saved = read_safetensors(checkpoint);
  std::map<std::string, AnyView> views;
  for (const auto& [name, tensor] : saved.tensors) {
    std::visit([&, &key = name](const auto& each) { views.emplace(key, each.view()); }, tensor);
  }
  for (const std::string text : {"", "{", "1e999", "[]", "{}", R"({"loss_sum":"x"})",
                                 R"({"loss_sum":1,"num_targets":1,"epochs":[{"epoch":[]}]})"}) {
    saved.metadata["memory"] = text;
    write_safetensors(checkpoint, views, saved.metadata);
    expect_problem({"train", "translate", "--resume", folder / "run"}, checkpoint,
                   "does not say which epochs are done", text);
  }
  const std::string vocabulary = folder / "run/source_vocabulary.json";
  for (const std::string text : {"", "{", "1e999", "\xFF", "[]", "{}", R"({"format":3})"}) {
    write_text(vocabulary, text);
    expect_problem({"translate", "--model", folder / "run", "one"}, vocabulary, "at byte ", text);
  }
}

}  // namespace
}  // namespace heed
