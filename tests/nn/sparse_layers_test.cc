// Attention layers that select blocks of keys, and layers without a softmax.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/mask.h"
#include "heed/attention/select_blocks.h"
#include "heed/core/random.h"
#include "heed/nn/attention_layers.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;

AttentionConfig config_with_rotary() {
  AttentionConfig config{.embed_dim = 16, .num_heads = 4, .num_kv_heads = 2};
  config.rotary = {.max_len = 64, .pairing = RotaryPairing::kHalves};
  return config;
}

// The queries and keys of a layer, as an observer receives them.
struct Seen {
  Tensor<float> query, key;
};

Seen observed(MultiHeadAttention<>& layer, const Variable<>& x, const AttendOptions<>& options) {
  Seen seen;
  layer.observe([&](const AttentionCall<float>& call) {
    seen = {to_tensor(call.query), to_tensor(call.key)};
  });
  layer.forward(x, options);
  layer.observe({});
  return seen;
}

Tensor<float> output(MultiHeadAttention<>& layer, const Variable<>& x,
                     const AttendOptions<>& options) {
  return layer.forward(x, options).out.value();
}

TEST(SelectedBlocks, AreAMaskOfWhatTheLayerAttendsWith) {
  const SelectBlocksOptions selected{.block = 3, .top_k = 2, .causal = true};
  AttentionConfig config = config_with_rotary();
  set_seed(1);
  MultiHeadAttention<> plain(config);
  config.selected_blocks = selected;
  set_seed(1);
  MultiHeadAttention<> layer(config);
  const Variable<> x(normal<float>({2, 14, 16}, 2));
  const AttendOptions<> options{.mask = causal()};
  const Seen seen = observed(plain, x, options);
  const Mask mask = causal() & Mask::blocks(select_blocks(seen.query, seen.key, selected));
  const Tensor<float> expected = output(plain, x, {.mask = mask});
  EXPECT_TRUE(same_bits(output(layer, x, options), expected));
  EXPECT_FALSE(same_bits(output(plain, x, options), expected));
}

// The selection is constant: gradients are those of attention with the mask.
TEST(SelectedBlocks, HaveTheGradientsOfTheirMask) {
  AttentionConfig config{.embed_dim = 8, .num_heads = 2};
  config.selected_blocks = SelectBlocksOptions{.block = 2, .top_k = 2, .causal = true};
  set_seed(1);
  MultiHeadAttention<> layer(config);
  set_seed(1);
  MultiHeadAttention<> plain({.embed_dim = 8, .num_heads = 2});
  const Variable<> x(normal<float>({1, 9, 8}, 2));
  const Seen seen = observed(plain, x, {});
  const Mask mask =
      causal() & Mask::blocks(select_blocks(seen.query, seen.key, *config.selected_blocks));
  sum(layer.forward(x, {.mask = causal()}).out).backward();
  sum(plain.forward(x, {.mask = mask}).out).backward();
  const auto grads = layer.parameters();
  const auto expected = plain.parameters();
  ASSERT_EQ(grads.size(), expected.size());
  for (std::size_t i = 0; i < grads.size(); ++i) {
    EXPECT_TRUE(same_bits(to_tensor(grads[i].grad()), to_tensor(expected[i].grad()))) << i;
  }
}

TEST(FeatureMapLayer, MultipliesFeatures) {
  AttentionConfig config = config_with_rotary();
  set_seed(1);
  MultiHeadAttention<> plain(config);
  config.feature_map = FeatureMapOptions{.causal = true};
  set_seed(1);
  MultiHeadAttention<> layer(config);
  const Variable<> x(normal<float>({2, 14, 16}, 2));
  const Seen seen = observed(plain, x, {});
  const Heads<float> value{linear(x, plain.W_V().weight(), plain.W_V().bias()),
                           {.num_heads = 2, .head_dim = 4}};
  const Tensor<float> attended =
      heed::feature_map_attention(seen.query, seen.key, value.view(), {.causal = true});
  Tensor<float> side_by_side({2, 14, 16});
  for (std::int64_t i = 0; i < side_by_side.num_elements(); ++i) {
    side_by_side.data()[i] = attended(i / 224, i % 16 / 4, i / 16 % 14, i % 4);
  }
  const Variable<> expected =
      linear(Variable<>(std::move(side_by_side)), plain.W_O().weight(), plain.W_O().bias());
  EXPECT_LT(max_difference(output(layer, x, {}), to_tensor(expected.value())), 1e-6);
}

TEST(FeatureMapLayer, HasNoScoresToChange) {
  AttentionConfig config{.embed_dim = 8, .num_heads = 2};
  config.feature_map = FeatureMapOptions{.causal = true};
  MultiHeadAttention<> layer(config);
  const Variable<> x(normal<float>({1, 5, 8}, 2));
  const auto refuses = [&](const AttendOptions<>& options, const std::string& what) {
    EXPECT_THAT([&] { layer.forward(x, options); },
                ThrowsMessage<InvalidArgument>(HasSubstr(what + " in a call of a layer")));
  };
  refuses({.mask = causal()}, "mask");
  refuses({.score_mod = [](auto score, auto...) { return score; }}, "score_mod");
  refuses({.return_attention = true}, "weights to look at");
  refuses({.rows = {{0, 0, 0}}}, "weights to look at");
  AttendOptions<> biased;
  biased.terms.bias = Variable<>(normal<float>({5, 5}, 1));
  refuses(biased, "terms");
  const auto refuses_config = [&](const auto& change, const std::string& what) {
    AttentionConfig other = config;
    change(other);
    EXPECT_THAT([&] { MultiHeadAttention<>{other}; },
                ThrowsMessage<InvalidArgument>(HasSubstr(what + " is given beside feature_map")));
  };
  refuses_config([](auto& other) { other.mask = causal(); }, "mask");
  refuses_config([](auto& other) { other.selected_blocks.emplace(); }, "selected_blocks");
  refuses_config([](auto& other) { other.softcap = 1; }, "softcap");
  refuses_config([](auto& other) { other.alibi = true; }, "alibi");
  refuses_config([](auto& other) { other.scale = 1; }, "scale");
  refuses_config([](auto& other) { other.relative_bias = RelativeBuckets::clip(2); },
                 "relative_bias");
  refuses_config([](auto& other) { other.weight_dropout = {"dropout", 0.1}; }, "weight_dropout");
}

TEST(SparseLayers, HaveNoCache) {
  AttentionConfig config{.embed_dim = 8, .num_heads = 2};
  const Variable<> x(normal<float>({1, 2, 8}, 2));
  const auto refuses = [&](const std::string& what) {
    MultiHeadAttention<> layer(config);
    KvSequence past = layer.make_past();
    EXPECT_THAT([&] { layer.continued(past, x); },
                ThrowsMessage<InvalidArgument>(HasSubstr("continued() of a layer with " + what)));
    EXPECT_EQ(past.length(), 0);
  };
  config.selected_blocks.emplace();
  refuses("selected_blocks");
  config.selected_blocks.reset();
  config.feature_map.emplace();
  refuses("a feature_map");
}

}  // namespace
}  // namespace heed::nn
