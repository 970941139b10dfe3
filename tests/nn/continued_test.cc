// A layer that keeps keys and values gives the outputs that it gives for all positions at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/attention/mask.h"
#include "heed/nn/attention_layers.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

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

// Returns rows [begin, end) of a batch.
Variable<> rows_of(const Tensor<float>& x, std::int64_t begin, std::int64_t end) {
  return Variable<>(to_tensor(x.view().slice(0, begin, end)));
}

TEST(MultiHeadAttention, ContinuesSeveralTextsSideBySide) {
  constexpr std::int64_t kTexts = 3;
  const auto beginning = normal<float>({1, 7, kWidth}, 1);
  const auto x = normal<float>({kTexts, 6, kWidth}, 2);
  for (const auto& [name, config] : configs()) {
    SCOPED_TRACE(name);
    MultiHeadAttention<> layer(config);
    layer.eval();
    KvConfig cache = layer.make_past().config();
    cache.page_size = 16;
    KvPool pool(cache);
    KvSequence past(pool);
    layer.continued(past, Variable<>(beginning), causal());
    std::vector<KvSequence> forks;  // these share the prefix
    std::vector<KvSequence> apart;  // these each have a copy
    std::vector<KvSequence> singly;
    for (std::int64_t i = 0; i < kTexts; ++i) {
      forks.push_back(past.fork());
      apart.emplace_back(pool);
      layer.continued(apart.back(), Variable<>(beginning), causal());
      singly.push_back(past.fork());
    }
    for (std::int64_t t = 0; t < 6; t += 2) {
      const auto part = to_tensor(x.view().slice(1, t, t + 2));
      const Variable<> out = layer.continued(forks, Variable<>(part), causal());
      const Variable<> expected = layer.continued(apart, Variable<>(part), causal());
      EXPECT_TRUE(same_bits(to_tensor(out.value()), to_tensor(expected.value())));
      for (std::int64_t i = 0; i < kTexts; ++i) {
        // A projection's matrix product may round differently for another number of rows.
        KvSequence& one = singly[static_cast<std::size_t>(i)];
        const Variable<> alone = layer.continued(one, rows_of(part, i, i + 1), causal());
        EXPECT_LT(
            max_difference(to_tensor(alone.value()), to_tensor(out.value().slice(0, i, i + 1))),
            2e-6);
      }
    }
    EXPECT_EQ(forks.front().length(), kLength);
  }
}

TEST(MultiHeadAttention, TextsSideBySideGoOnTogetherOrNotAtAll) {
  MultiHeadAttention<> layer(kWidth, 4);
  KvConfig cache = layer.make_past().config();
  cache.page_size = 16;
  cache.max_pages = 2;
  KvPool pool(cache);
  std::vector<KvSequence> pasts;
  pasts.reserve(3);
  for (int i = 0; i < 3; ++i) pasts.emplace_back(pool);
  const Variable<> x(normal<float>({3, 1, kWidth}, 1));
  EXPECT_THROW(layer.continued(pasts, x, causal()), OutOfPages);
  EXPECT_EQ(pool.pages_in_use(), 0);
  pasts.pop_back();
  EXPECT_THAT([&] { layer.continued(pasts, x, causal()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("a batch of 3, expected 2")));
  EXPECT_THAT([&] { layer.continued(std::span<KvSequence>(), x, causal()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("no past")));
  layer.continued(pasts[0], rows_of(normal<float>({3, 1, kWidth}, 1), 0, 1), causal());
  EXPECT_THAT(
      [&] {
        layer.continued(pasts, rows_of(normal<float>({3, 1, kWidth}, 1), 0, 2), causal());
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("pasts of 1 and 0 positions")));
}

TEST(CausalAttention, ContinuesWhatItHasSeen) {
  const auto x = normal<float>({2, kLength, kWidth}, 3);
  CausalSelfAttention<> layer(kWidth, 4, kLength, 0.5);
  layer.eval();
  const Variable<> all = layer.forward(Variable<>(x)).out;
  std::vector<KvSequence> pasts;
  pasts.push_back(layer.make_past());
  pasts.push_back(pasts.front().fork());
  std::int64_t first = 0;
  for (const std::int64_t last : {5, 6, 13}) {
    const Variable<> part = layer.continued(pasts, positions(x, first, last));
    EXPECT_LT(max_difference(to_tensor(part.value()), to_tensor(all.value().slice(1, first, last))),
              2e-6);
    first = last;
  }
  KvSequence past = layer.make_past();
  layer.continued(past, rows_of(x, 0, 1));
  EXPECT_THAT(
      [&] {
        layer.continued(past, Variable<>(normal<float>({1, 1, kWidth}, 1)));
      },
      Refuses("x", "1"));
  EXPECT_EQ(past.length(), kLength);
}

// A bounded past keeps enough positions to undo the last append.
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
