// Attention layers with scaled rotary positions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/attention/mask.h"
#include "heed/attention/reference.h"
#include "heed/attention/rotary.h"
#include "heed/core/random.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/state_file.h"
#include "io/io_test_util.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

constexpr std::int64_t kMaxLen = 40;
constexpr std::int64_t kWidth = 32;
constexpr std::int64_t kNumHeads = 2;  // of 16 dimensions, 12 of which are rotated
constexpr std::int64_t kRotaryDim = 12;

std::vector<RotaryScaling> scalings() {
  return {std::monostate{},
          LinearScaling{.factor = 2},
          DynamicNtkScaling{.factor = 2, .original_max_len = 10},
          YarnScaling{.factor = 4, .original_max_len = 500},
          LongRopeScaling{.short_factor = std::vector<double>(kRotaryDim / 2, 1.25),
                          .long_factor = {1, 1.5, 2, 3, 5, 8},
                          .original_max_len = 20,
                          .factor = 2},
          Llama3Scaling{.factor = 8, .original_max_len = 100}};
}

AttentionConfig config_with(const RotaryScaling& scaling, std::int64_t scaled_length = 0) {
  AttentionConfig config{.embed_dim = kWidth, .num_heads = kNumHeads};
  config.rotary = {.max_len = kMaxLen,
                   .rotary_dim = kRotaryDim,
                   .base = 1000,
                   .pairing = RotaryPairing::kNeighbours,
                   .scaling = scaling,
                   .scaled_length = scaled_length};
  return config;
}

template <class T>
Tensor<T> output(MultiHeadAttention<T>& layer, const Tensor<T>& x) {
  return layer.forward(Variable<T>(x), {.mask = causal()}).out.value();
}

// Returns the heads that a projection makes of x [1, length, width], rotated from position 0.
template <class T>
Tensor<T> turned_heads(const Linear<T>& projection, const Tensor<T>& x,
                       const RotaryFrequencies& frequencies) {
  const auto caches = rotary_caches<T>(kMaxLen, frequencies);
  const Variable<T> projected = linear(Variable<T>(x), projection.weight(), projection.bias());
  const auto heads = projected.value()
                         .reshape({1, x.extent(1), kNumHeads, kWidth / kNumHeads})
                         .permute({0, 2, 1, 3});
  return heed::rotary_embedding(heads, caches.cos, caches.sin, RotaryPairing::kNeighbours,
                                {.rotary_dim = kRotaryDim});
}

TEST(RotaryLayers, ScoreWithTheScaledFrequencies) {
  const auto x = normal<double>({1, 9, kWidth}, 1);
  for (const RotaryScaling& scaling : scalings()) {
    for (const std::int64_t scaled_length : {0, 7}) {
      SCOPED_TRACE(scaling.index());
      MultiHeadAttention<double> layer(config_with(scaling, scaled_length));
      const auto frequencies = rotary_frequencies(kRotaryDim, 1000, scaling,
                                                  scaled_length == 0 ? kMaxLen : scaled_length);
      const auto attended = layer.forward(Variable<double>(x), {.return_attention = true});
      const auto query = turned_heads(layer.W_Q(), x, frequencies);
      const auto key = turned_heads(layer.W_K(), x, frequencies);
      const auto expected =
          reference::attention(query, key, key, {}, reference::Keep::kWeights).weights;
      EXPECT_LE(max_difference(attended.weights, expected), 1e-14);
    }
  }
}

// Each scaling gives a different function, and for each length if it depends on the length.
TEST(RotaryLayers, DifferByTheirScaling) {
  const auto x = normal<float>({1, 9, kWidth}, 1);
  std::vector<Tensor<float>> outputs;
  const auto add = [&](const AttentionConfig& config) {
    set_seed(0);
    MultiHeadAttention<> layer(config);
    outputs.push_back(output(layer, x));
    for (std::size_t i = 0; i + 1 < outputs.size(); ++i) {
      EXPECT_GT(max_difference(outputs[i], outputs.back()), 1e-5) << i;
    }
  };
  for (const RotaryScaling& scaling : scalings()) add(config_with(scaling));
  add(config_with(scalings()[2], 25));  // dynamic NTK
  add(config_with(scalings()[4], 20));  // LongRoPE with its short factors
}

class RotaryLayersInFiles : public IoTest {};

TEST_F(RotaryLayersInFiles, AreSavedAndLoaded) {
  const RotaryScaling yarn = scalings()[3];
  const auto x = normal<float>({1, 9, kWidth}, 1);
  set_seed(1);
  MultiHeadAttention<> layer(config_with(yarn));
  save(path("layer"), layer);
  set_seed(2);
  MultiHeadAttention<> loaded(config_with(yarn));
  ASSERT_GT(max_difference(output(loaded, x), output(layer, x)), 1e-3);
  load(path("layer"), loaded);
  EXPECT_TRUE(same_bits(output(loaded, x), output(layer, x)));
  // Saved layers contain no frequencies; these belong to the configuration.
  MultiHeadAttention<> unscaled(config_with({}));
  load(path("layer"), unscaled);
  EXPECT_GT(max_difference(output(unscaled, x), output(layer, x)), 1e-5);
}

Tensor<float> rows_of(const Tensor<float>& x, std::int64_t first, std::int64_t last) {
  return to_tensor(x.view().slice(1, first, last));
}

// Returns the outputs of continued() for the positions between the bounds, from an empty past.
Tensor<float> continued_in_parts(const MultiHeadAttention<>& layer, KvSequence& past,
                                 const Tensor<float>& x, std::initializer_list<int> bounds) {
  Tensor<float> result(x.shape());
  std::int64_t first = 0;
  for (const std::int64_t last : bounds) {
    const Variable<> out = layer.continued(past, Variable<>(rows_of(x, first, last)), causal());
    std::copy(out.value().data(), out.value().data() + out.num_elements(),
              result.data() + first * x.extent(2));
    first = last;
  }
  return result;
}

// Equal except for the products with the weights: BLAS may add in another order for other numbers
// of rows.
TEST(RotaryLayers, ContinueAsInOnePass) {
  const auto x = normal<float>({1, 30, kWidth}, 1);
  for (const RotaryScaling& scaling : scalings()) {
    SCOPED_TRACE(scaling.index());
    MultiHeadAttention<> layer(config_with(scaling));
    KvSequence whole = layer.make_past();
    const auto expected = continued_in_parts(layer, whole, x, {30});
    KvSequence parts = layer.make_past();
    const auto found = continued_in_parts(layer, parts, x, {13, 14, 15, 30});
    EXPECT_LT(max_difference(parts.dequantised().key, whole.dequantised().key), 1e-5);
    EXPECT_LT(max_difference(found, expected), 1e-5);
    // The cache holds rotated keys.
    const auto frequencies = rotary_frequencies(kRotaryDim, 1000, scaling, kMaxLen);
    EXPECT_TRUE(same_bits(whole.dequantised().key.reshaped({1, kNumHeads, 30, 16}),
                          turned_heads(layer.W_K(), x, frequencies)));
  }
}

TEST(RotaryLayers, RefuseAPairingThatIsNotNamed) {
  AttentionConfig config = config_with({});
  config.rotary.pairing = std::nullopt;
  EXPECT_THAT(
      [&] { MultiHeadAttention<>{config}; },
      ThrowsMessage<InvalidArgument>(HasSubstr(
          "MultiHeadAttention: rotary.pairing is not named, expected RotaryPairing::kHalves "
          "or kNeighbours")));
  config.rotary.max_len = 0;
  EXPECT_NO_THROW(MultiHeadAttention<>{config});
  EXPECT_THAT([] { MultiHeadAttention<>{config_with(YarnScaling{})}; },
              Refuses("YarnScaling::factor", "0"));
  EXPECT_THAT([] { MultiHeadAttention<>{config_with(LinearScaling{2}, -1)}; },
              Refuses("rotary.scaled_length", "-1"));
}

}  // namespace
}  // namespace heed::nn
