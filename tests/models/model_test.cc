#include "heed/models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"
#include "support/tiny_model.h"

namespace heed { namespace {

using models::Family;
using models::Inputs;
using models::Model;
using testing::HasSubstr;
using testing::Values;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;
using testing_support::TinyModel;

const std::vector<std::int64_t> kIds{1, 7, 12, 7, 30, 39, 4, 12, 2};

class TinyModels : public testing::TestWithParam<Family> {
 protected:
  TinyModel files_{GetParam()};
  Model model_ = models::load(files_.folder());
};

INSTANTIATE_TEST_SUITE_P(Of, TinyModels, Values(Family::kBert, Family::kGpt2, Family::kLlama),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(TinyModels, HaveTheSizesOfTheirFiles) {
  EXPECT_EQ(model_.config().num_layers, 2);
  EXPECT_EQ(model_.config().hidden_size, 24);
  EXPECT_EQ(model_.config().vocab_size, 40);
  EXPECT_EQ(model_.has_head(), GetParam() != Family::kBert);
  EXPECT_EQ(model_.num_bytes(), 4 * model_.num_parameters());
}

TEST_P(TinyModels, TextsOfABatchAreComputedAsAlone) {
  const Tensor<float> alone = model_.forward(Inputs::of(kIds));
  const std::vector<std::int64_t> other{5, 6};
  Inputs both{.ids = other, .boundaries = {0, 2, 2, 11}};
  both.ids.insert(both.ids.end(), kIds.begin(), kIds.end());
  const Tensor<float> together = model_.forward(both);
  EXPECT_LT(max_difference<float>(together.view().slice(0, 2, 11), alone), 1e-5);
  EXPECT_LT(
      max_difference<float>(together.view().slice(0, 0, 2), model_.forward(Inputs::of(other))),
      1e-5);
}

TEST_P(TinyModels, NothingIsComputedOfNothing) {
  EXPECT_EQ(model_.forward(Inputs::of(std::vector<std::int64_t>{})).shape(), (Shape{0, 24}));
}

TEST_P(TinyModels, HaveTheSameBitsOnAnyNumberOfThreads) {
  const Tensor<float> expected = model_.forward(Inputs::of(kIds));
  for (const int threads : {1, 2, 5}) {
    const ThreadLimit limit(threads);
    EXPECT_TRUE(same_bits(model_.forward(Inputs::of(kIds)), expected)) << threads;
  }
}

TEST_P(TinyModels, ATextReadPieceByPieceIsTheText) {
  if (!model_.config().is_causal()) {
    EXPECT_THAT([&] { model_.make_past(); },
                testing::ThrowsMessage<InvalidArgument>(HasSubstr("the model is an encoder")));
    return;
  }
  const Tensor<float> whole = model_.forward(Inputs::of(kIds));
  nn::Past past = model_.make_past();
  std::int64_t read = 0;
  for (const std::int64_t length : {3, 1, 5}) {
    const std::span<const std::int64_t> piece(kIds.data() + read, static_cast<std::size_t>(length));
    const Tensor<float> hidden = model_.forward(piece, past);
    EXPECT_LT(max_difference<float>(hidden, whole.view().slice(0, read, read + length)), 1e-5);
    read += length;
    EXPECT_EQ(past.length(), read);
  }
}

TEST_P(TinyModels, ObserversSeeWhatEachLayerComputes) {
  std::vector<std::int64_t> layers;
  models::ForwardOptions options;
  options.observer = [&](const models::AttentionCall& call) {
    layers.push_back(call.layer);
    const Tensor<float> weights = models::weights_of(call);
    EXPECT_EQ(weights.shape(), (Shape{model_.config().num_heads, 9, 9}));
    for (std::int64_t row = 0; row < weights.num_elements(); row += 9) {
      double sum = 0;
      for (std::int64_t key = 0; key < 9; ++key) sum += weights.data()[row + key];
      EXPECT_NEAR(sum, 1, 1e-5);
    }
    const bool sees_the_future = weights(0, 0, 8) > 0;
    EXPECT_EQ(sees_the_future, GetParam() == Family::kBert);
  };
  std::vector<std::int64_t> states;
  options.hidden_states = [&](std::int64_t index, FloatView state) {
    states.push_back(index);
    EXPECT_EQ(state.shape(), (Shape{9, 24}));
  };
  model_.forward(Inputs::of(kIds), options);
  EXPECT_EQ(layers, (std::vector<std::int64_t>{0, 1}));
  EXPECT_EQ(states, (std::vector<std::int64_t>{0, 1, 2}));
}

TEST_P(TinyModels, ALayerWhoseHeadsAreOffDoesNotReadOtherTokens) {
  models::ForwardOptions options;
  for (std::int64_t layer = 0; layer < 2; ++layer) {
    for (std::int64_t head = 0; head < model_.config().num_heads; ++head) {
      options.switched_off.push_back({layer, head});
    }
  }
  std::vector<std::int64_t> other = kIds;
  other[0] = 20;
  const Tensor<float> a = model_.forward(Inputs::of(kIds), options);
  const Tensor<float> b = model_.forward(Inputs::of(other), options);
  EXPECT_LT(max_difference<float>(a.view().slice(0, 1, 9), b.view().slice(0, 1, 9)), 1e-6);
  EXPECT_GT(max_difference<float>(a.view().slice(0, 0, 1), b.view().slice(0, 0, 1)), 1e-3);
  EXPECT_GT(max_difference(model_.forward(Inputs::of(kIds)), a), 1e-3);
}

TEST_P(TinyModels, RefuseWhatDoesNotFit) {
  EXPECT_THAT(
      [&] {
        model_.forward(Inputs::of(std::vector<std::int64_t>{3, 40}));
      },
      Refuses("ids[1]", "40"));
  EXPECT_THAT([&] { model_.forward(Inputs::of(std::vector<std::int64_t>(65, 3))); },
              Refuses("text 0", "65"));
  EXPECT_THAT(
      [&] {
        model_.forward({.ids = {1, 2}, .boundaries = {0, 1}});
      },
      Refuses("boundaries", "[0, 1]"));
  EXPECT_THAT(
      [&] {
        model_.forward({.ids = {1, 2}, .boundaries = {0, 2}, .type_ids = {0}});
      },
      testing::ThrowsMessage<InvalidArgument>(HasSubstr("there are 1 type_ids")));
  EXPECT_THAT(
      [&] {
        model_.forward(Inputs::of(kIds), {.switched_off = {{1, 9}}});
      },
      testing::ThrowsMessage<InvalidArgument>(HasSubstr("switched_off has head 1.9")));
}

TEST_P(TinyModels, ATextThatDoesNotFitLeavesThePastAsItWas) {
  if (!model_.config().is_causal()) return;
  nn::Past past = model_.make_past();
  model_.forward(kIds, past);
  const std::vector<std::int64_t> too_long(60, 3);
  EXPECT_THAT([&] { model_.forward(too_long, past); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("60 tokens after 9")));
  EXPECT_EQ(past.length(), 9);
}

TEST_P(TinyModels, TheMeanLossIsThatOfTheLogits) {
  if (!model_.has_head()) return;
  const Tensor<float> logits = model_.logits(model_.forward(Inputs::of(kIds)));
  double expected = 0;
  for (std::int64_t i = 0; i + 1 < 9; ++i) {
    double sum = 0;
    for (std::int64_t token = 0; token < 40; ++token) sum += std::exp(double{logits(i, token)});
    expected += std::log(sum) - double{logits(i, kIds[static_cast<std::size_t>(i) + 1])};
  }
  EXPECT_NEAR(models::mean_loss(model_, kIds), expected / 8, 1e-6);
  EXPECT_THAT([&] { models::mean_loss(model_, std::span(kIds).first(1)); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("expected at least 2")));
}

TEST_P(TinyModels, VectorsOfTextsAreMeansOfTheirTokens) {
  const std::vector<std::string> texts{"w3 w8 w3", "w1"};
  const Tensor<float> vectors = model_.embed(texts);
  ASSERT_EQ(vectors.shape(), (Shape{2, 24}));
  const Tensor<float> hidden =
      model_.forward(Inputs::of(std::vector<std::int64_t>{1, 7, 12, 7, 2}));
  for (std::int64_t i = 0; i < 24; ++i) {
    double sum = 0;
    for (std::int64_t token = 0; token < 5; ++token) sum += hidden(token, i);
    EXPECT_NEAR(vectors(0, i), sum / 5, 1e-5);
  }
}

TEST(ModelFiles, FilesThatDoNotFitAreRefused) {
  const TinyModel files(Family::kLlama);
  const std::string config = files.read("config.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string changed = config;
    changed.replace(changed.find(from), from.size(), to);
    files.write("config.json", changed);
  };
  const auto load = [&] { models::load(files.folder()); };
  with("\"hidden_size\":24", "\"hidden_size\":28");
  EXPECT_THAT(load, Refuses<FormatError>("model.embed_tokens.weight", "[40, 24]"));
  with("\"num_hidden_layers\":2", "\"num_hidden_layers\":3");
  EXPECT_THAT(load, testing::ThrowsMessage<FormatError>(HasSubstr("model.layers.2.")));
  with("\"num_hidden_layers\":2", "\"num_hidden_layers\":0");
  EXPECT_THAT(load, Refuses<FormatError>("number of layers", "0"));
  with("\"num_key_value_heads\":2", "\"num_key_value_heads\":3");
  EXPECT_THAT(load,
              testing::ThrowsMessage<FormatError>(HasSubstr("4 heads cannot share 3 key heads")));
  with("\"model_type\":\"llama\"", "\"model_type\":\"rwkv\"");
  EXPECT_THAT(load, testing::ThrowsMessage<FormatError>(HasSubstr("model_type is \"rwkv\"")));
  with("\"silu\"", "7");
  EXPECT_THAT(load, testing::ThrowsMessage<FormatError>(
                        HasSubstr("hidden_act is an integer, expected a string")));
  files.write("config.json", "{\"model_type\": ");
  EXPECT_THAT(load, testing::ThrowsMessage<FormatError>(HasSubstr("config.json")));
  EXPECT_THAT([] { models::load("/nowhere"); },
              testing::ThrowsMessage<IoError>(HasSubstr("/nowhere")));
}

class ModelTensors : public testing::TestWithParam<Family> {
 protected:
  TinyModel files_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Of, ModelTensors, Values(Family::kBert, Family::kGpt2, Family::kLlama),
                         [](const auto& info) { return std::string(to_string(info.param)); });

TEST_P(ModelTensors, AreAllUsedOrRefusedByName) {
  files_.change_tensors([](auto& tensors) { tensors["a.stranger"] = Tensor<float>({2}); });
  EXPECT_THAT([&] { models::load(files_.folder()); },
              testing::ThrowsMessage<FormatError>(
                  HasSubstr("tensor 'a.stranger' belongs to no part of a ")));
}

TEST_P(ModelTensors, OfALayerTooManyAreRefused) {
  const std::string config = files_.read("config.json");
  const std::string key = GetParam() == Family::kGpt2 ? "\"n_layer\":" : "\"num_hidden_layers\":";
  std::string changed = config;
  changed.replace(changed.find(key + "2"), key.size() + 1, key + "1");
  files_.write("config.json", changed);
  EXPECT_THAT([&] { models::load(files_.folder()); },
              testing::ThrowsMessage<FormatError>(HasSubstr("model of 1 layers")));
}

TEST_P(ModelTensors, ThatAreMissingAreNamedBiasesToo) {
  std::vector<std::string> names;
  files_.change_tensors([&](auto& tensors) {
    for (const auto& [name, tensor] : tensors) names.push_back(name);
  });
  for (const std::string& name : names) {
    const TinyModel files(GetParam());
    files.change_tensors([&](auto& tensors) { tensors.erase(name); });
    if (name == "lm_head.weight") {
      EXPECT_FALSE(models::load(files.folder()).has_head());
      continue;
    }
    EXPECT_THAT([&] { models::load(files.folder()); },
                testing::ThrowsMessage<FormatError>(HasSubstr(name + "'")))
        << name;
  }
}

TEST(ModelFiles, ThatChangeNothingAreNotMissed) {
  const std::pair<Family, std::vector<std::string>> harmless[] = {
      {Family::kBert, {"embeddings.position_ids", "pooler.dense.weight", "cls.predictions.bias"}},
      {Family::kGpt2, {"transformer.h.0.attn.bias", "transformer.h.1.attn.masked_bias"}},
      {Family::kLlama, {"model.layers.1.self_attn.rotary_emb.inv_freq", "score.weight"}}};
  for (const auto& family : harmless) {
    const TinyModel files(family.first);
    const Tensor<float> expected = models::load(files.folder()).forward(Inputs::of(kIds));
    files.change_tensors([&](auto& tensors) {
      for (const std::string& name : family.second) tensors[name] = Tensor<float>({2});
    });
    EXPECT_TRUE(same_bits(models::load(files.folder()).forward(Inputs::of(kIds)), expected));
  }
}

TEST(ModelFiles, WeightsThatAreNoNumbersAreNamedWhenTheyAreUsed) {
  const TinyModel files(Family::kLlama);
  const char* const name = "model.layers.1.mlp.up_proj.weight";
  files.change_tensors([&](auto& tensors) { tensors[name](3, 4) = std::nanf(""); });
  const Model model = models::load(files.folder());
  const std::string expected = std::string("tensor ") + name + " of shape [36, 24] holds nan";
  EXPECT_THAT([&] { model.forward(Inputs::of(kIds)); },
              testing::ThrowsMessage<FormatError>(HasSubstr(expected)));
  EXPECT_THAT([&] { model.embed(std::vector<std::string>{"w1 w2"}); },
              testing::ThrowsMessage<FormatError>(HasSubstr(expected)));
  nn::Past past = model.make_past();
  EXPECT_THAT([&] { model.forward(kIds, past); },
              testing::ThrowsMessage<FormatError>(HasSubstr(expected)));
  EXPECT_EQ(past.length(), 0);
}

TEST(ModelFiles, AHeadThatHoldsNoNumbersIsNamed) {
  const TinyModel files(Family::kLlama);
  files.change_tensors([&](auto& tensors) { tensors["lm_head.weight"](1, 2) = INFINITY; });
  const Model model = models::load(files.folder());
  const Tensor<float> hidden = model.forward(Inputs::of(kIds));
  EXPECT_THAT([&] { model.logits(hidden); },
              testing::ThrowsMessage<FormatError>(HasSubstr("tensor lm_head.weight of shape")));
}

TEST(ModelFiles, NumbersBeyondFloatAreNoResult) {
  const TinyModel files(Family::kBert);
  files.change_tensors([&](auto& tensors) {
    for (float& weight : tensors["embeddings.word_embeddings.weight"].elements()) weight = 3e38F;
    for (float& weight : tensors["embeddings.position_embeddings.weight"].elements()) {
      weight = 3e38F;
    }
  });
  EXPECT_THAT([&] { models::load(files.folder()).forward(Inputs::of(kIds)); },
              testing::ThrowsMessage<InvalidArgument>(HasSubstr("beyond float32")));
}

TEST(ModelFiles, BiasesThatTheConfigurationDeniesAreRefused) {
  const TinyModel files(Family::kLlama);
  const std::string name = "model.layers.1.mlp.up_proj.bias";
  files.change_tensors([&](auto& tensors) { tensors[name] = Tensor<float>({36}); });
  EXPECT_THAT(
      [&] { models::load(files.folder()); },
      testing::ThrowsMessage<FormatError>(HasSubstr("tensor '" + name + "' belongs to no")));
}

TEST(ModelFiles, AHeadInTheFileCountsWhateverTheConfigurationTies) {
  const TinyModel files(Family::kLlama);
  const Tensor<float> expected = models::load(files.folder()).logits(normal<float>({1, 24}, 3));
  std::string config = files.read("config.json");
  const std::string untied = "\"tie_word_embeddings\":false";
  files.write("config.json",
              config.replace(config.find(untied), untied.size(), "\"tie_word_embeddings\":true"));
  const Model model = models::load(files.folder());
  EXPECT_FALSE(model.config().has_tied_head);
  EXPECT_TRUE(same_bits(model.logits(normal<float>({1, 24}, 3)), expected));
}

}  // namespace

}  // namespace heed
