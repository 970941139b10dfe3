// A layer that keeps keys and values gives what it gives to all positions at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "heed/kv_cache.h"
#include "heed/mask.h"
#include "heed/nn/attention_layers.h"
#include "support/tensors.h"

namespace heed::nn {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;

constexpr std::int64_t kLength = 13;
constexpr std::int64_t kWidth = 24;

struct NamedConfig {
  std::string name;
  AttentionConfig config;
};

std::vector<NamedConfig> configs() {
  const AttentionConfig plain{.embed_dim = kWidth, .num_heads = 4};
  std::vector<NamedConfig> result{{"separate", plain},
                                  {"fused", fused_projection(kWidth, 4)},
                                  {"without output", {.embed_dim = kWidth, .out = ""}}};
  const auto add = [&](const std::string& name, auto change) {
    result.push_back({name, plain});
    change(result.back().config);
  };
  add("grouped", [](AttentionConfig& c) { c.num_kv_heads = 2; });
  add("grouped, fused", [](AttentionConfig& c) {
    c.num_kv_heads = 1;
    c.inputs = {"qkv"};
  });
  add("rotary", [](AttentionConfig& c) {
    c.rotary = {.max_len = kLength, .pairing = RotaryPairing::kHalves};
  });
  add("alibi, softcap, scale", [](AttentionConfig& c) {
    c.alibi = true;
    c.softcap = 5;
    c.scale = 0.3;
  });
  add("window", [](AttentionConfig& c) { c.mask = sliding_window(3, 0); });
  add("dropout", [](AttentionConfig& c) { c.weight_dropout = {"dropout", 0.5}; });
  return result;
}

Variable<> positions(const Tensor<float>& x, std::int64_t first, std::int64_t last) {
  return Variable<>(to_tensor(x.view().slice(1, first, last)));
}

TEST(MultiHeadAttention, ContinuesWhatItHasSeen) {
  const auto x = normal<float>({1, kLength, kWidth}, 1);
  for (const auto& [name, config] : configs()) {
    SCOPED_TRACE(name);
    MultiHeadAttention<> layer(config);
    layer.eval();
    const Variable<> all = layer.forward(Variable<>(x), {.mask = causal()}).out;
    KvSequence past = layer.make_past();
    std::int64_t first = 0;
    for (const std::int64_t last : {5, 6, 7, 13}) {
      const Variable<> part = layer.continued(past, positions(x, first, last), causal());
      const auto expected = to_tensor(all.value().slice(1, first, last));
      EXPECT_LT(max_difference(to_tensor(part.value()), expected), 2e-6);
      EXPECT_EQ(past.length(), last);
      first = last;
    }
  }
}

// What a bounded past still keeps is enough to take back what was appended last.
TEST(MultiHeadAttention, NothingIsAppendedToABoundedPastWhereContinuingFails) {
  MultiHeadAttention<> layer(kWidth, 4);
  KvSequence past = layer.make_past({.window = 3, .max_append = 2});
  const Mask wrong_mask = Mask::allow(Tensor<bool>({7, 7}));
  for (std::int64_t length = 0; length < 300; length += 2) {
    const Variable<> x(normal<float>({1, 2, kWidth}, 1));
    ASSERT_THROW(layer.continued(past, x, wrong_mask), InvalidArgument);
    ASSERT_EQ(past.length(), length);
    layer.continued(past, x, causal());
  }
}

TEST(MultiHeadAttention, NothingIsAppendedWhereContinuingFails) {
  MultiHeadAttention<> layer(kWidth, 4);
  KvSequence past = layer.make_past();
  const auto x = normal<float>({1, 2, kWidth}, 1);
  layer.continued(past, Variable<>(x), causal());
  const Mask wrong_mask = Mask::allow(Tensor<bool>({7, 7}));
  EXPECT_THROW(layer.continued(past, Variable<>(x), wrong_mask), InvalidArgument);
  EXPECT_EQ(past.length(), 2);
  EXPECT_THAT(
      [&] {
        layer.continued(past, Variable<>(normal<float>({2, 1, kWidth}, 1)));
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("a batch of 2, expected 1")));
  EXPECT_THROW(layer.continued(past, Variable<>(normal<float>({1, 1, 5}, 1))), InvalidArgument);
  KvSequence other({.num_kv_heads = 1, .head_dim = 3});
  EXPECT_THROW(layer.continued(other, Variable<>(x)), InvalidArgument);
  EXPECT_EQ(other.length(), 0);
  EXPECT_EQ(past.length(), 2);
}

}  // namespace
}  // namespace heed::nn
