#include "models/sealing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "heed/core/cancellation.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/models/generate.h"
#include "heed/models/model.h"
#include "heed/models/seal.h"
#include "io/sha256.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using models::GenerateOptions;
using models::parse_seal;
using models::Seal;
using models::SealDifference;
using models::SealPart;
using testing::AllOf;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing_support::TinyModel;

// Matches a difference by its part, its index and a piece of its text.
auto difference_of(SealPart part, std::int64_t index, const std::string& text) {
  return AllOf(Field(&SealDifference::part, part), Field(&SealDifference::index, index),
               Field(&SealDifference::text, HasSubstr(text)));
}

GenerateOptions drawn_text() {
  return {.max_tokens = 12, .sampling = {.temperature = 1.5}, .seed = 3};
}

Seal seal_of(const models::Model& model, std::string_view prompt,
             GenerateOptions options = drawn_text()) {
  Seal seal;
  options.seal = &seal;
  generate(model, prompt, options);
  return seal;
}

Seal seal_of_vectors(const models::Model& model, const std::vector<std::string>& texts) {
  Seal seal;
  model.embed(texts, {.seal = &seal});
  return seal;
}

class Seals : public testing::Test {
 protected:
  // The listing that sha256sum prints of the files of the folder.
  std::string listing(const std::vector<std::string>& names) const {
    std::string lines;
    for (const std::string& name : names) {
      lines += io::to_hex(io::Sha256().add(files_.read(name)).finish()) + "  " + name + '\n';
    }
    return lines;
  }

  TinyModel files_{models::Family::kLlama};
  models::Model model_ = models::load(files_.folder());
};

TEST_F(Seals, AreReadAsTheyAreWritten) {
  const Seal seal = seal_of(model_, "w1 w2");
  EXPECT_EQ(parse_seal(to_string(seal)), seal);
  const std::string text = to_string(seal);
  EXPECT_THAT(text, testing::StartsWith("heed1:generate:" + seal.model + ':' + seal.input +
                                        ":n=12,t=1.5,s=3:" + seal.output + ':'));
  EXPECT_EQ(parse_seal("  " + text.substr(0, 70) + "\r\n  " + text.substr(70) + '\n'), seal);
  const Seal vectors = seal_of_vectors(model_, {"w1", "w2 w3"});
  EXPECT_EQ(parse_seal(to_string(vectors)), vectors);
  EXPECT_EQ(vectors.steps.size(), 4U);
}

// Forty tokens take a line of two terminals.
TEST_F(Seals, OfFortyTokensAreShort) {
  GenerateOptions options = drawn_text();
  options.max_tokens = 40;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    options.seed = seed;
    const Seal seal = seal_of(model_, "w1 w2", options);
    if (seal.steps.size() < 80) continue;
    EXPECT_LE(to_string(seal).size(), 180U);
    return;
  }
  FAIL() << "no seed writes 40 tokens";
}

TEST_F(Seals, OfTheModelIsWhatSha256sumPrints) {
  files_.write("generation_config.json", R"({"eos_token_id": 2})");
  files_.write("tokenizer_config.json", "{}");
  files_.write("README.md", "not read");
  const models::Model model = models::load(files_.folder());
  const std::string expected =
      io::to_hex(io::Sha256()
                     .add(listing({"config.json", "generation_config.json", "model.safetensors",
                                   "tokenizer.json", "tokenizer_config.json"}))
                     .finish());
  EXPECT_EQ(model.sha256(), expected);
  EXPECT_EQ(seal_of(model, "w1").model, expected.substr(0, 16));
}

TEST_F(Seals, AreTheSameForAnyNumberOfThreads) {
  for (const std::string_view prompt : {"w1 w2", "w3 w1 w4 w1 w5 w9 w2 w6 w5 w3 w5"}) {
    const Seal seal = seal_of(model_, prompt);
    for (const int threads : {1, 2, 3}) {
      const ThreadLimit limit(threads);
      EXPECT_THAT(seal_differences(seal, seal_of(models::load(files_.folder()), prompt)), IsEmpty())
          << threads;
    }
  }
}

// Each part by its definition in docs/models.md.
TEST_F(Seals, HashLogitsAndChoicesInTurn) {
  const std::vector<std::int64_t> prompt{5, 9};
  Seal seal;
  const models::Generated text = generate(model_, prompt, {.max_tokens = 5, .seal = &seal});
  nn::Past past = model_.make_past();
  Tensor<float> hidden = model_.forward(prompt, past);
  io::Sha256Digest chain{};
  const std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const auto first_digit = [&](const io::Sha256Digest& digest) {
    return digits[std::to_integer<std::size_t>(digest[0] >> 2)];
  };
  std::string steps;
  for (const std::int64_t id : text.ids) {
    const std::int64_t rows = hidden.extent(0);
    const Tensor<float> logits = model_.logits(to_tensor(hidden.view().slice(0, rows - 1, rows)));
    const auto seen = io::Sha256().add(chain).add_floats(logits.elements()).finish();
    chain = io::Sha256().add(seen).add_integer(id).finish();
    steps += first_digit(seen);
    steps += first_digit(chain);
    hidden = model_.forward(std::span(&id, 1), past);
  }
  ASSERT_EQ(text.reason, models::EndReason::kMaxTokens);
  EXPECT_EQ(seal.steps, steps);
  const auto output = io::Sha256().add("max_tokens\n").add(text.text).finish();
  EXPECT_EQ(seal.output, io::to_hex(output).substr(0, 8));
  const auto input = io::Sha256().add_integer(5).add_integer(9).finish();
  EXPECT_EQ(seal.input, io::to_hex(input).substr(0, 8));
  const auto all = io::Sha256()
                       .add("heed1:generate:" + seal.model + ':' + seal.input + ":n=5")
                       .add(model_.sha256())
                       .add(input)
                       .add(chain)
                       .add(output)
                       .finish();
  EXPECT_EQ(seal.all.size(), 22U);
  EXPECT_EQ(seal.all[0], first_digit(all));
  EXPECT_EQ(seal.all[4], digits[std::to_integer<std::size_t>(all[3] >> 2)]);
}

TEST_F(Seals, OneChangedWeightOfTheModelIsNamed) {
  const Seal seal = seal_of(model_, "w1 w2");
  files_.change_tensors([](std::map<std::string, Tensor<float>>& tensors) {
    tensors.at("model.layers.1.mlp.up_proj.weight")(0, 0) += 0.5F;
  });
  const Seal changed = seal_of(models::load(files_.folder()), "w1 w2");
  const auto differences = seal_differences(seal, changed);
  ASSERT_GE(differences.size(), 2U);
  EXPECT_THAT(differences[0], difference_of(SealPart::kModel, -1, "begins with " + changed.model));
  EXPECT_THAT(differences[1], difference_of(SealPart::kLogits, 0, "from token 0 on"));
}

TEST_F(Seals, AFileThatChangesNoBitIsNamedAlone) {
  const Seal seal = seal_of(model_, "w1 w2");
  files_.write("tokenizer_config.json", "{}");
  EXPECT_THAT(seal_differences(seal, seal_of(models::load(files_.folder()), "w1 w2")),
              ElementsAre(difference_of(SealPart::kModel, -1, "another model")));
}

TEST_F(Seals, AnotherPromptIsNamed) {
  const auto differences = seal_differences(seal_of(model_, "w1 w2"), seal_of(model_, "w1 w3"));
  ASSERT_GE(differences.size(), 2U);
  EXPECT_THAT(differences[0], difference_of(SealPart::kInput, -1, "the tokens of the prompt"));
  EXPECT_THAT(differences[1], difference_of(SealPart::kLogits, 0, "from token 0 on"));
}

TEST_F(Seals, EachOtherOptionIsNamed) {
  const Seal seal = seal_of(model_, "w1 w2");
  const auto first_difference = [&](const std::function<void(GenerateOptions&)>& change) {
    GenerateOptions options = drawn_text();
    change(options);
    const auto all = seal_differences(seal, seal_of(model_, "w1 w2", options));
    return all.empty() ? SealDifference{} : all.front();
  };
  EXPECT_THAT(first_difference([](GenerateOptions& o) { o.max_tokens = 3; }),
              difference_of(SealPart::kOption, -1, "max_tokens is 3, in the seal 12"));
  EXPECT_THAT(first_difference([](GenerateOptions& o) { o.sampling.temperature = 0; }),
              difference_of(SealPart::kOption, -1, "temperature is 0, in the seal 1.5"));
  EXPECT_THAT(first_difference([](GenerateOptions& o) { o.sampling.top_k = 4; }),
              difference_of(SealPart::kOption, -1, "top_k is 4, in the seal 0"));
  EXPECT_THAT(first_difference([](GenerateOptions& o) { o.sampling.top_p = 0.1; }),
              difference_of(SealPart::kOption, -1, "top_p is 0.1, in the seal 1"));
  EXPECT_THAT(first_difference([](GenerateOptions& o) { o.seed = 4; }),
              difference_of(SealPart::kOption, -1, "seed is 4, in the seal 3"));
  EXPECT_THAT(first_difference([](GenerateOptions& o) { o.stop = {"w1"}; }),
              difference_of(SealPart::kOption, -1, "the hash of the stop texts is "));
  EXPECT_THAT(
      first_difference([](GenerateOptions& o) { o.past.key_storage = KvStorage::kInt8; }),
      difference_of(SealPart::kOption, -1, "the storage of keys is int8, in the seal float32"));
  EXPECT_THAT(
      first_difference([](GenerateOptions& o) { o.past.value_storage = KvStorage::kBFloat16; }),
      difference_of(SealPart::kOption, -1, "the storage of values is bfloat16"));
}

TEST_F(Seals, AnotherStorageOfKeysHasOtherLogitsFromTheTokenThatReadsThem) {
  GenerateOptions stored = drawn_text();
  stored.past = {KvStorage::kInt4, KvStorage::kInt4};
  const auto differences =
      seal_differences(seal_of(model_, "w1 w2"), seal_of(model_, "w1 w2", stored));
  ASSERT_GE(differences.size(), 3U);
  EXPECT_EQ(differences[2].part, SealPart::kLogits);
}

// The text that generate() computes is one, changed in one place after the other.
TEST_F(Seals, AChangedPartIsNamed) {
  const Seal seal = seal_of(model_, "w1 w2");
  ASSERT_GE(seal.steps.size(), 20U);
  const auto changed = [&](const std::function<void(Seal&)>& change) {
    Seal other = seal;
    change(other);
    return seal_differences(seal, parse_seal(to_string(other)));
  };
  const auto turn = [](char& c, char other) { c = c == other ? 'B' : other; };
  EXPECT_THAT(
      changed([&](Seal& s) { turn(s.steps[6], 'A'); }),
      ElementsAre(difference_of(SealPart::kLogits, 3, "the logits differ from token 3 on")));
  EXPECT_THAT(changed([&](Seal& s) {
                turn(s.steps[7], 'A');
                turn(s.steps[8], 'A');
              }),
              ElementsAre(difference_of(SealPart::kChoice, 3, "token 3 of")));
  EXPECT_THAT(changed([](Seal& s) { s.steps.resize(s.steps.size() - 2); }),
              ElementsAre(difference_of(SealPart::kLength, -1, "tokens, the seal")));
  EXPECT_THAT(changed([](Seal& s) { s.output = "0123abcd"; }),
              ElementsAre(difference_of(SealPart::kOutput, -1, "another text")));
  EXPECT_THAT(changed([&](Seal& s) { turn(s.all[21], 'w'); }),
              ElementsAre(difference_of(SealPart::kAll, -1, "a bit differs")));
  EXPECT_THAT(changed([](Seal& s) {
                s.kind = models::SealKind::kEmbed;
                s.options.clear();
              }),
              ElementsAre(difference_of(SealPart::kKind, -1, "'generate', this is 'embed'")));
  EXPECT_THAT(changed([](Seal&) {}), IsEmpty());
}

// At temperature 0 a choice cannot differ when the logits are the same.
TEST_F(Seals, AGreedyChoiceThatDiffersMeansOtherLogits) {
  const Seal seal = seal_of(model_, "w1 w2", {.max_tokens = 4});
  Seal other = seal;
  other.steps[3] = other.steps[3] == 'A' ? 'B' : 'A';
  EXPECT_THAT(seal_differences(seal, other), ElementsAre(difference_of(SealPart::kLogits, 1, "")));
}

TEST_F(Seals, OfVectorsNameEachTextWhoseVectorDiffers) {
  const TinyModel files(models::Family::kBert);
  const models::Model bert = models::load(files.folder());
  const std::vector<std::string> texts{"w1 w2", "w3", "w4 w5 w6"};
  const Seal seal = seal_of_vectors(bert, texts);
  EXPECT_EQ(to_string(seal_of_vectors(bert, texts)), to_string(seal));
  EXPECT_THAT(seal_differences(seal, seal_of_vectors(bert, {"w1 w2", "w7", "w4 w5 w6"})),
              ElementsAre(difference_of(SealPart::kInput, -1, "the texts are not those"),
                          difference_of(SealPart::kVectors, 1, "text 1 differs, of 3")));
  EXPECT_THAT(seal_differences(seal, seal_of_vectors(bert, {"w1 w2", "w3"})),
              ElementsAre(difference_of(SealPart::kInput, -1, ""),
                          difference_of(SealPart::kLength, -1, "2 vectors, the seal 3")));
  Seal normalized = seal;
  normalized.options = {{"pool", "cls"}, {"norm", "1"}};
  EXPECT_THAT(
      seal_differences(seal, parse_seal(to_string(normalized))),
      ElementsAre(difference_of(SealPart::kOption, -1, "pooling is cls, in the seal mean"),
                  difference_of(SealPart::kOption, -1, "normalisation is 1, in the seal 0")));
}

// Requests cancellation after a number of polls.
class StopHashing final : public Cancellation {
 public:
  explicit StopHashing(int poll) : left_(poll) {}
  void poll() noexcept override {
    if (--left_ == 0) request();
  }
  int left() const { return left_; }

 private:
  std::atomic<int> left_;
};

TEST_F(Seals, HashingShowsProgressAndCanBeCancelled) {
  // Ids that no text uses make a file of 11 MB.
  files_.change_tensors([](std::map<std::string, Tensor<float>>& tensors) {
    for (const char* name : {"model.embed_tokens.weight", "lm_head.weight"}) {
      tensors[name] = Tensor<float>({60'000, 24});
    }
  });
  std::string config = files_.read("config.json");
  const std::string size = "\"vocab_size\":40";
  config.replace(config.find(size), size.size(), "\"vocab_size\":60000");
  files_.write("config.json", config);
  const models::Model model = models::load(files_.folder());
  const ThreadLimit one(1);
  {
    StopHashing stop(5);
    const CancellationScope scope(&stop);
    EXPECT_THROW(model.sha256(), Cancelled);
    EXPECT_LE(stop.left(), 0);
  }
  std::vector<std::int64_t> done;
  std::int64_t expected = 0;
  const std::string hash = model.sha256([&](std::int64_t bytes, std::int64_t total) {
    done.push_back(bytes);
    expected = total;
  });
  ASSERT_GE(done.size(), 10U);
  EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  EXPECT_EQ(done.back(), expected);
  EXPECT_EQ(expected, static_cast<std::int64_t>(
                          std::filesystem::file_size(files_.folder() / "model.safetensors")));
  // It is kept: there is nothing to cancel.
  StopHashing at_once(1);
  const CancellationScope scope(&at_once);
  EXPECT_EQ(model.sha256(), hash);
}

}  // namespace
}  // namespace heed
