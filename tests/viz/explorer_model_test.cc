#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/data_type.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/viz/explorer.h"
#include "support/refusal.h"
#include "viz/explorer/model_layers.h"
#include "viz/explorer/page.h"

namespace heed { namespace {

using testing_support::Message;

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

// Two layers of two heads over three tokens.
ModelAttention small_model() {
  TorchGenerator generator(3);
  ModelAttention model;
  model.title = "small";
  model.tokens = {"a", "b", "c"};
  for (int layer = 0; layer < 2; ++layer) {
    LayerAttention attention;
    attention.query = generator.randn<float>({2, 3, 4});
    attention.key = generator.randn<float>({1, 3, 4});
    attention.mask = causal();
    model.layers.push_back(std::move(attention));
  }
  return model;
}

// Three tokens with uniform weights on themselves and earlier tokens.
LayerAttention even_weights() {
  LayerAttention layer;
  layer.weights = Tensor<float>({1, 3, 3}, {1, 0, 0, 0.5F, 0.5F, 0, 1.0F / 3, 1.0F / 3, 1.0F / 3});
  layer.mask = causal();
  return layer;
}

nlohmann::json data_of(const std::string& page, const std::string& id) {
  const std::string start = "<script type=\"application/json\" id=\"" + id + "\">";
  const std::size_t first = page.find(start) + start.size();
  return nlohmann::json::parse(page.substr(first, page.find("</script>", first) - first));
}

// Decodes base64 to floats.
std::vector<float> floats_of(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  std::uint32_t group = 0;
  int bits = 0;
  for (const char digit : text.substr(0, text.find('='))) {
    group = group << 6 | static_cast<std::uint32_t>(digits.find(digit));
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<char>(group >> bits & 0xffU));
  }
  std::vector<float> floats(bytes.size() / sizeof(float));
  std::memcpy(floats.data(), bytes.data(), floats.size() * sizeof(float));
  return floats;
}

void expect_model_refused(const ModelAttention& model, const Message& message) {
  EXPECT_THAT([&] { explorer_model_page(model); },
              ThrowsMessage<InvalidArgument>(
                  testing::AllOf(testing::HasSubstr("explorer_model_page: "), message)));
}

template <class Change>
ModelAttention changed(const Change& change) {
  ModelAttention model = small_model();
  change(model);
  return model;
}

TEST(ExplorerModel, ThePageHasWhatItWasGiven) {
  ModelAttention model = small_model();
  model.words = {0, 0, -1};
  model.layers[1].mask = causal() & sliding_window(1, 0);
  model.layers[1].softcap = 30;
  model.layers[1].scale = 0.25F;
  model.scores = {{"made up", "A number.", Tensor<float>({2, 2}, {1, 2, 3, 4.5F})}};
  model.opening_layer = 1;
  const std::string page = explorer_model_page(model);
  const auto data = data_of(page, "data").at("model");
  EXPECT_EQ(data.at("title"), "small");
  EXPECT_EQ(data.at("tokens"), (nlohmann::json{"a", "b", "c"}));
  EXPECT_EQ(data.at("words"), (nlohmann::json{0, 0, -1}));
  EXPECT_EQ(data.at("numHeads"), 2);
  EXPECT_EQ(data.at("openingLayer"), 1);
  EXPECT_EQ(data.at("openingQuery"), 1);  // the middle one
  EXPECT_EQ(data.at("masks").at(0).at("sees"), "causal");
  EXPECT_EQ(data.at("masks").at(1).at("sees").at("bits"), "mYA=");  // 100 110 011
  EXPECT_EQ(data.at("masks").at(1).at("name"), model.layers[1].mask.description());
  const auto& layer = data.at("layers").at(1);
  EXPECT_EQ(
      layer,
      (nlohmann::json{
          {"mask", 1}, {"headDim", 4}, {"headsPerKey", 2}, {"scale", 0.25}, {"softcap", 30.0}}));
  EXPECT_EQ(data.at("layers").at(0).at("scale"), 0.5);
  EXPECT_EQ(data.at("scores").at(0).at("values"), (nlohmann::json{1, 2, 3, 4.5}));
  EXPECT_TRUE(data_of(page, "layer-1").contains("queryScales"));
  EXPECT_THAT(page, Not(HasSubstr("layer-2\"")));
  EXPECT_THAT(page, Not(HasSubstr("@LAYERS@")));
  EXPECT_THAT(page, HasSubstr("connect-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<script>" + std::string(explorer::script_source()) + "</script>"));
}

// Head 1 of layer 0 attends to the first token for all queries, head 0 of layer 1 to the previous
// token.
TEST(ExplorerModel, OpensOnTheHeadWithTheMostPattern) {
  ModelAttention model = small_model();
  LayerAttention sink;
  sink.mask = causal();
  sink.weights = Tensor<float>({2, 3, 3}, {1, 0, 0, 0.6F, 0.4F, 0, 0.5F, 0.3F, 0.2F,  //
                                           1, 0, 0, 1, 0, 0, 1, 0, 0});
  LayerAttention before = sink;
  before.weights = Tensor<float>({2, 3, 3}, {1, 0, 0, 0.9F, 0.1F, 0, 0, 0.9F, 0.1F,  //
                                             1, 0, 0, 0.4F, 0.6F, 0, 0.2F, 0.2F, 0.6F});
  model.layers = {sink, before};
  const auto opening = [&] {
    const auto data = data_of(explorer_model_page(model), "data").at("model");
    return std::pair<int, int>(data.at("openingLayer"), data.at("openingHead"));
  };
  EXPECT_EQ(opening(), std::pair(1, 0));
  // Also if the page shows other scores, and among the heads of a chosen layer.
  model.scores = {{"made up", "A number.", Tensor<float>({2, 2}, {1, 2, 3, 4})}};
  EXPECT_EQ(opening(), std::pair(1, 0));
  model.opening_layer = 0;
  EXPECT_EQ(opening(), std::pair(0, 1));
  model.opening_head = 0;
  EXPECT_EQ(opening(), std::pair(0, 0));
}

TEST(ExplorerModel, ValuesAreStoredAsKeysAre) {
  ModelAttention model = small_model();
  model.layers[0].value = Tensor<float>({1, 3, 5});
  model.layers[0].value(0, 2, 4) = 2;
  const std::string page = explorer_model_page(model);
  const nlohmann::json layers = data_of(page, "data").at("model").at("layers");
  EXPECT_EQ(layers.at(0).at("valueDim"), 5);
  EXPECT_EQ(layers.at(0).at("headsPerValue"), 2);
  EXPECT_FALSE(layers.at(1).contains("valueDim"));
  EXPECT_TRUE(data_of(page, "layer-0").contains("valueScales"));
  model.layers[0].value = Tensor<float>({3, 3, 5});
  expect_model_refused(model, {"layers[0].value", "[3, 3, 5]"});
}

TEST(ExplorerModel, MasksThatAreAlikeAreStoredOnce) {
  ModelAttention model = small_model();
  EXPECT_EQ(data_of(explorer_model_page(model), "data").at("model").at("masks").size(), 1);
}

// One row per head, different in each layer: the last and earlier ones.
TEST(ExplorerModel, RowsToCompareAreHeeds) {
  const ModelAttention model = small_model();
  const auto layer = data_of(explorer_model_page(model), "layer-1");
  EXPECT_EQ(layer.at("checkRow"), 1);
  const LayerAttention& attention = model.layers[1];
  std::vector<float> expected;
  for (std::int64_t head = 0; head < 2; ++head) {
    double scores[2];
    for (std::int64_t k = 0; k < 2; ++k) {
      scores[k] = 0;
      for (std::int64_t i = 0; i < 4; ++i) {
        scores[k] += 0.5 * attention.query(head, 1, i) * attention.key(0, k, i);
      }
    }
    const double first = 1 / (1 + std::exp(scores[1] - scores[0]));
    expected.insert(expected.end(), {static_cast<float>(first), static_cast<float>(1 - first), 0});
  }
  const std::vector<float> found = floats_of(layer.at("checkWeights"));
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(ExplorerModel, VectorsAreStoredToAHalfStep) {
  TorchGenerator generator(0);
  Tensor<float> vectors = generator.randn<float>({2, 5, 7});
  for (float& number : vectors.elements().subspan(0, 7)) number = 0;
  vectors(1, 4, 6) = 1e30F;
  vectors(1, 3, 0) = 1e-42F;
  const explorer::StoredVectors stored = explorer::store_vectors(vectors);
  ASSERT_EQ(stored.scales.size(), 10);
  EXPECT_EQ(stored.scales[0], 0);
  const Tensor<float> back = explorer::restored(stored, vectors.shape());
  for (std::size_t i = 0; i < stored.numbers.size(); ++i) {
    // Plus the rounding of scale · number.
    const double most = 0.5 * stored.scales[i / 7] + 0x1p-24 * std::abs(vectors.data()[i]);
    EXPECT_NEAR(back.data()[i], vectors.data()[i], most) << i;
  }
}

// One dimension of the keys is a thousand times as large as the others, and the queries use it.
TEST(ExplorerModel, LayersThatIntegersWouldChangeAreStoredAsFloats) {
  ModelAttention model = small_model();
  for (std::int64_t t = 0; t < 3; ++t) {
    model.layers[0].key(0, t, 0) = 30000;
    model.layers[0].query(0, t, 0) = 1;
  }
  const std::string page = explorer_model_page(model);
  const auto first = data_of(page, "layer-0");
  EXPECT_FALSE(first.contains("queryScales"));
  EXPECT_EQ(first.at("query"), explorer::base64(std::as_bytes(model.layers[0].query.elements())));
  EXPECT_TRUE(data_of(page, "layer-1").contains("keyScales"));
  // Scores that overflow a float.
  model.layers[0].query(0, 0, 0) = std::numeric_limits<float>::max();
  EXPECT_FALSE(data_of(explorer_model_page(model), "layer-0").contains("queryScales"));
}

TEST(ExplorerModel, GivenWeightsAreThoseThatAreSeenInHalfPrecision) {
  ModelAttention model = small_model();
  model.layers = {even_weights()};
  const std::string page = explorer_model_page(model);
  std::vector<std::uint16_t> halves;
  for (const float weight : {1.0F, 0.5F, 0.5F, 1.0F / 3, 1.0F / 3, 1.0F / 3}) {
    halves.push_back(Float16(weight).bits());
  }
  EXPECT_EQ(data_of(page, "layer-0").at("weights").at(0),
            explorer::base64(std::as_bytes(std::span(halves))));
  EXPECT_EQ(data_of(page, "data").at("model").at("layers").at(0), (nlohmann::json{{"mask", 0}}));
}

TEST(ExplorerModel, PatternScoresAreThoseOfTheDiagnostics) {
  LayerAttention previous = even_weights();
  previous.weights = Tensor<float>({1, 3, 3}, {1, 0, 0, 1, 0, 0, 0, 1, 0});
  const std::vector<HeadScore> scores = pattern_scores({even_weights(), previous});
  std::vector<std::string> names;
  names.reserve(scores.size());
  for (const HeadScore& score : scores) names.push_back(score.name);
  EXPECT_THAT(names,
              ElementsAre("previous token", "first token", "itself", "next token", "entropy"));
  EXPECT_EQ(scores[0].values.shape(), (Shape{2, 1}));
  EXPECT_THAT(scores[0].values(0, 0), FloatNear((1.0F / 2 + 1.0F / 3) / 2, 1e-6F));
  EXPECT_EQ(scores[0].values(1, 0), 1);
  EXPECT_EQ(scores[4].values(1, 0), 0);
  EXPECT_THAT(scores[4].values(0, 0), FloatNear(1, 1e-6F));
  // Recomputed from queries and keys: if all are 0, every visible key has the same weight.
  LayerAttention zeros;
  zeros.query = Tensor<float>({1, 3, 2});
  zeros.key = Tensor<float>({1, 3, 2});
  zeros.mask = causal();
  EXPECT_THAT(pattern_scores({zeros})[0].values(0, 0), FloatNear(scores[0].values(0, 0), 1e-6F));
}

TEST(ExplorerModel, TextsAreHarmless) {
  ModelAttention model = small_model();
  model.title = model.tokens[0] = "</script><b>&\x1b";
  model.scores = {{"<i>", "<u>", Tensor<float>({2, 2})}};
  const std::string page = explorer_model_page(model);
  for (const char* raw : {"</script><b>", "<i>", "<u>", "\x1b"}) {
    EXPECT_THAT(page, Not(HasSubstr(raw)));
  }
  EXPECT_EQ(data_of(page, "data").at("model").at("title"), "</script><b>&\\x1B");
}

TEST(ExplorerModel, RefusesLayersThatDoNotFit) {
  const auto refused = [](auto change, const Message& message) {
    expect_model_refused(changed(change), message);
  };
  refused([](auto& m) { m.layers.clear(); }, "layers is empty, expected at least one");
  refused([](auto& m) { m.layers[0] = {}; }, {"layers[0].weights", "[0]"});
  refused([](auto& m) { m.layers[1] = {}; },
          "layers[1].weights is empty, expected either query and key, or weights, and not both");
  refused([](auto& m) { m.layers[1].key = {}; }, {"layers[1].key", "[0]"});
  refused(
      [](auto& m) {
        m.layers[1].weights = Tensor<float>({2, 3, 3});
      },
      "layers[1].weights is given, expected either");
  refused(
      [](auto& m) {
        m.layers[1].query = Tensor<float>({3, 3, 4});
      },
      {"layers[1].query", "[3, 3, 4]"});
  refused(
      [](auto& m) {
        m.layers[1].key = Tensor<float>({3, 3, 4});
      },
      {"layers[1].key", "[3, 3, 4]"});
  refused(
      [](auto& m) {
        m.layers[1].key = Tensor<float>({2, 3, 5});
      },
      {"layers[1].key", "[2, 3, 5]"});
  refused([](auto& m) { m.layers[0].key(0, 2, 1) = std::nanf(""); }, {"layers[0].key", "nan"});
  refused([](auto& m) { m.layers[0].scale = INFINITY; }, {"layers[0].scale", "inf"});
  refused([](auto& m) { m.layers[0].softcap = -1; }, {"layers[0].softcap", "-1"});
}

TEST(ExplorerModel, RefusesWeightsThatAreNone) {
  const auto refused = [](auto change, const Message& message) {
    ModelAttention model = small_model();
    model.layers = {even_weights()};
    change(model.layers[0]);
    expect_model_refused(model, message);
  };
  refused(
      [](auto& layer) {
        layer.weights = Tensor<float>({1, 3, 4});
      },
      {"layers[0].weights", "[1, 3, 4]"});
  refused([](auto& layer) { layer.weights(0, 0, 0) = -1; }, {"layers[0].weights", "-1"});
  refused([](auto& layer) { layer.weights(0, 0, 0) = 2; }, {"layers[0].weights", "2"});
  refused([](auto& layer) { layer.weights(0, 1, 2) = 0.5F; },
          "layers[0].weights is 0.5, expected 0 where the mask causal hides the key: head 0, query "
          "1, key 2");
}

TEST(ExplorerModel, RefusesWhatIsNotThere) {
  const auto refused = [](auto change, const Message& message) {
    expect_model_refused(changed(change), message);
  };
  refused([](auto& m) { m.tokens.clear(); }, {"tokens", "0"});
  refused([](auto& m) { m.tokens.resize(1025); }, {"tokens", "1025"});
  refused([](auto& m) { m.tokens.resize(2); }, {"tokens", "2"});
  refused([](auto& m) { m.words = {1}; }, {"words", "1"});
  refused(
      [](auto& m) {
        m.scores = {{"x", "", Tensor<float>({2, 3})}};
      },
      {"scores[0].values", "[2, 3]"});
  refused(
      [](auto& m) {
        m.scores = {{"x", "", Tensor<float>({2, 2}, {0, 0, NAN, 0})}};
      },
      {"scores[0].values", "nan"});
  refused([](auto& m) { m.opening_layer = 2; }, {"opening_layer", "2"});
  refused([](auto& m) { m.opening_head = -1; }, {"opening_head", "-1"});
  refused([](auto& m) { m.opening_query = 3; }, {"opening_query", "3"});
}

}  // namespace
}  // namespace heed
