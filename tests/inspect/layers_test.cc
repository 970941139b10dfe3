// Layers of models, sentences, and their pages.
#include "heed/inspect/layers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/inspect/explorer.h"
#include "heed/inspect/layer_text.h"
#include "heed/inspect/sentence.h"

namespace heed::inspect { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<MeasuredLayer> measured_layers() {
  set_seed(0);
  models::CausalTransformer model({.vocab_size = 5, .layers = 2, .d_model = 8, .heads = 2});
  const std::vector<std::int64_t> ids{0, 1, 2, 3, 4, 0, 1, 2, 0, 0};
  return measure_layers(model, {ids.data(), {2, 5}}, {5, 3});
}

TEST(MeasureLayers, SeesTheHeadsOfEachLayer) {
  const auto layers = measured_layers();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[1].name, "blocks.1.attention");
  ASSERT_EQ(layers[0].diagnostics.heads.size(), 2U);
  EXPECT_EQ(layers[0].weights.shape(), (Shape{2, 5, 5}));
  for (std::int64_t query = 0; query < 5; ++query) {
    double sum = 0;
    for (std::int64_t key = 0; key < 5; ++key) {
      sum += layers[0].weights(0, query, key);
      const bool is_later = key > query;
      EXPECT_TRUE(!is_later || layers[0].weights(0, query, key) == 0);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
  // Rows that see two or more keys: four of the first sequence, two of the second.
  EXPECT_EQ(layers[0].diagnostics.heads[0].rows, 6);
}

TEST(LayerText, SaysWhatJsonSays) {
  const auto layers = measured_layers();
  const auto json = nlohmann::json::parse(json_of(layers[0].diagnostics));
  EXPECT_EQ(json["heads"].size(), 2U);
  EXPECT_EQ(json["heads"][1]["entropy"], layers[0].diagnostics.heads[1].entropy);
  EXPECT_EQ(json["mean_similarity"], layers[0].diagnostics.mean_similarity());
  EXPECT_THAT(text_of(layers[0]), HasSubstr("blocks.0.attention: 2 heads"));
  EXPECT_EQ(text_of(std::vector<Finding>{}), "  Nothing stands out.\n");
}

TEST(ToExplorer, MakesATabOfEachLayer) {
  const ModelMeasurement measured{.task = "lm",
                                  .sequences = "two sequences",
                                  .layers = measured_layers(),
                                  .source = {"a", "b", "c", "d", "e"}};
  const auto sentences = to_explorer(measured);
  ASSERT_EQ(sentences.size(), 2U);
  EXPECT_EQ(sentences[0].title, "blocks.0.attention");
  EXPECT_EQ(sentences[0].note, "The first of two sequences.");
  EXPECT_THAT(sentences[0].tokens, ElementsAre("a", "b", "c", "d", "e"));
  EXPECT_TRUE(sentences[0].keys.empty());
  // The page begins with the mask of the layer.
  EXPECT_EQ(sentences[0].mask, "causal");
  EXPECT_FALSE(sentences[0].visible(1, 2));
  EXPECT_TRUE(sentences[0].visible(2, 1));
  EXPECT_THAT(explorer_page({sentences}), HasSubstr(R"("mask":"causal")"));
  EXPECT_THAT(
      [] {
        to_explorer("long", Tensor<float>({1, 1, 1025}));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("found 1 and 1025")));
}

TEST(Attend, ComputesAllStepsOfASentence) {
  const SentenceAttention attention = attend(" The cat ", {.num_heads = 2, .d_model = 8});
  EXPECT_EQ(attention.text, "The cat");
  EXPECT_THAT(attention.labels, ElementsAre("The", "cat"));
  EXPECT_EQ(attention.weights.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(attention.weights(0, 0, 0), 1);
  EXPECT_FALSE(attention.visible(0, 1));
  const ExplorerSentence sentence = to_explorer(attention);
  EXPECT_EQ(sentence.query.shape(), (Shape{2, 2, 4}));
  EXPECT_THAT(explorer_page({{sentence}}), HasSubstr("The cat"));
  EXPECT_THAT([] { attend("  "); }, ThrowsMessage<InvalidArgument>(HasSubstr("has no words")));
}

}  // namespace
}  // namespace heed::inspect
