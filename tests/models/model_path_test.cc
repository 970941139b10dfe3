// The errors for paths without a model that heed opens, and for folders that lack a file.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "support/tiny_model.h"

namespace heed { namespace {

namespace fs = std::filesystem;
using models::Family;
using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::TinyModel;

// Expects an error with the path and words that say what it is or what to do.
void expect_refused(const fs::path& path, const char* words) {
  EXPECT_THAT([&] { models::load(path); },
              ThrowsMessage<IoError>(AllOf(HasSubstr(path.filename().string()), HasSubstr(words))));
}

TEST(ModelPath, FilesOfOthersAreNamedWithWhatToDo) {
  const TinyModel files(Family::kLlama);
  const std::pair<const char*, std::vector<const char*>> others[] = {
      {"adapter_model.safetensors", {"an adapter", "merge_and_unload"}},
      {"model.safetensors", {"weights without the configuration", "give its folder, "}},
      {"pytorch_model.bin", {"has pickled", "save_pretrained(NEW_FOLDER)"}},
      {"model.PT", {"has pickled", "save_pretrained(NEW_FOLDER)"}},
      {"tf_model.h5", {"TensorFlow", "save_pretrained(NEW_FOLDER)"}},
      {"model.onnx", {"a graph of ONNX", "that it was made of"}},
      {"config.json", {"a configuration", "give its folder, "}},
      {"notes.txt", {"no model that heed knows", "config.json, model.safetensors"}}};
  for (const auto& [name, says] : others) {
    if (!fs::exists(files.folder() / name)) files.write(name, "something");
    for (const char* what : says) expect_refused(files.folder() / name, what);
  }
}

TEST(ModelPath, WeightsAloneAreSentToTheFolderThatIsNeeded) {
  const TinyModel files(Family::kLlama);
  fs::remove(files.folder() / "config.json");
  EXPECT_THAT([&] { models::load(files.folder() / "model.safetensors"); },
              ThrowsMessage<IoError>(HasSubstr("heed opens folders with config.json")));
}

TEST(ModelPath, FoldersSayWhatTheyLack) {
  const TinyModel files(Family::kLlama);
  const auto load = [&] { models::load(files.folder()); };
  fs::remove(files.folder() / "model.safetensors");
  EXPECT_THAT(load, ThrowsMessage<IoError>(HasSubstr(
                        "a folder without model.safetensors or model.safetensors.index.json")));
  files.write("pytorch_model.bin", "something");
  EXPECT_THAT(
      load, ThrowsMessage<IoError>(HasSubstr("pytorch_model.bin in it is a file of weights that")));
  fs::remove(files.folder() / "config.json");
  EXPECT_THAT(load, ThrowsMessage<IoError>(HasSubstr("a folder without config.json; heed opens")));
  files.write("tiny.gguf", "GGUF");
  EXPECT_THAT(load, ThrowsMessage<IoError>(
                        AllOf(HasSubstr("give the GGUF file in it"), HasSubstr("tiny.gguf"))));
  files.write("adapter_config.json", R"({"base_model_name_or_path": "some/model"})");
  EXPECT_THAT(load, ThrowsMessage<IoError>(
                        AllOf(HasSubstr("a change of some/model"), HasSubstr("merge_and_unload"))));
}

TEST(ModelPath, AFolderWithoutATokenizerTakesIds) {
  const TinyModel files(Family::kLlama);
  const std::vector<std::int64_t> ids{1, 7, 12, 30};
  const models::Model with = models::load(files.folder());
  const models::Generated expected = models::generate(with, ids, {.max_tokens = 6});
  fs::remove(files.folder() / "tokenizer.json");
  const models::Model model = models::load(files.folder());
  const models::Generated found = models::generate(model, ids, {.max_tokens = 6});
  EXPECT_EQ(found.ids, expected.ids);
  EXPECT_EQ(found.text, "");
  EXPECT_EQ(model.tokenizer().label(17), "17");
  EXPECT_THAT(
      [&] { model.tokenizer().encode("a text"); },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("has neither tokenizer.json nor vocab.txt"),
                                           HasSubstr("save_pretrained(FOLDER)"))));
}

TEST(ModelPath, AModelThatModulesJsonPutsBelowIsFound) {
  const TinyModel files(Family::kBert);
  const std::vector<std::string> texts{"w1 w2 w3"};
  const Tensor<float> expected = models::load(files.folder()).embed(texts);
  fs::create_directory(files.folder() / "0_Transformer");
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json"}) {
    fs::rename(files.folder() / name, files.folder() / "0_Transformer" / name);
  }
  fs::create_directory(files.folder() / "1_Pooling");
  files.write("1_Pooling/config.json", R"({"pooling_mode_mean_tokens": true})");
  files.write("modules.json",
              R"([{"path": "0_Transformer", "type": "sentence_transformers.models.Transformer"},
                  {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])");
  const Tensor<float> found = models::load(files.folder()).embed(texts);
  EXPECT_TRUE(std::equal(found.elements().begin(), found.elements().end(),
                         expected.elements().begin(), expected.elements().end()));
}

}  // namespace

}  // namespace heed
