#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using reference::Keep;
using testing::Each;
using testing_support::elements_of;
using testing_support::expect_refused;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;

using testing_support::kInfinity;
using testing_support::kNaN;

struct ForwardInputs {
  Tensor<double> query = normal<double>({2, 4, 5, 3}, 1);
  Tensor<double> key = normal<double>({2, 2, 6, 3}, 2);
  Tensor<double> value = normal<double>({2, 2, 6, 7}, 3);
};

reference::Result<double> run(const ForwardInputs& in, const AttentionOptions64& options = {}) {
  return reference::attention(in.query, in.key, in.value, options, Keep::kEverything);
}

TEST(Attention, IsTheFormula) {
  const ForwardInputs in;
  const auto result = run(in);
  ASSERT_EQ(result.out.shape(), (Shape{2, 4, 5, 7}));
  const std::int64_t b = 1;
  const std::int64_t h = 3;
  const std::int64_t q = 2;
  double denominator = 0;
  std::vector<double> numerators;
  for (std::int64_t k = 0; k < 6; ++k) {
    double product = 0;
    for (std::int64_t d = 0; d < 3; ++d) product += in.query(b, h, q, d) * in.key(b, 1, k, d);
    EXPECT_NEAR(result.scores(b, h, q, k), product / std::sqrt(3.0), 1e-14);
    numerators.push_back(std::exp(product / std::sqrt(3.0)));
    denominator += numerators.back();
  }
  double out = 0;
  for (std::int64_t k = 0; k < 6; ++k) {
    const double weight = numerators[static_cast<std::size_t>(k)] / denominator;
    EXPECT_NEAR(result.weights(b, h, q, k), weight, 1e-14);
    out += weight * in.value(b, 1, k, 4);
  }
  EXPECT_NEAR(result.out(b, h, q, 4), out, 1e-14);
  EXPECT_NEAR(result.lse(b, h, q), std::log(denominator), 1e-14);
}

TEST(Attention, KeepsOnlyWhatWasAskedFor) {
  const ForwardInputs in;
  const auto result = reference::attention(in.query, in.key, in.value, {}, Keep::kWeights);
  EXPECT_TRUE(result.scores.empty() && result.capped.empty() && result.modified.empty());
  EXPECT_TRUE(result.masked.empty() && result.dropped.empty());
  EXPECT_EQ(result.weights.shape(), (Shape{2, 4, 5, 6}));
  EXPECT_TRUE(same_bits(result.out, reference::attention(in.query, in.key, in.value).out));
}

TEST(Attention, AppliesTheStepsInOrder) {
  const ForwardInputs in;
  const Tensor<double> bias = normal<double>({4, 1, 6}, 9);
  AttentionOptions64 options;
  options.scale = 0.7;
  options.softcap = 1.5;
  options.score_mod = [](auto score, int b, int h, int q_idx, int kv_idx) {
    return score * 0.5 - 0.1 * (q_idx - kv_idx) + b + h;
  };
  options.bias = bias;
  options.mask = sliding_window(2, 1, Alignment::top_left());
  options.query_offset = 10;
  options.mask = Mask::where([](int, int, int q_idx, int kv_idx) { return q_idx - 10 >= kv_idx; });
  const auto plain = run(in, {.scale = 0.7});
  const auto result = run(in, options);
  const std::int64_t b = 1;
  const std::int64_t h = 2;
  const std::int64_t q = 3;
  for (std::int64_t k = 0; k < 6; ++k) {
    const double capped = 1.5 * std::tanh(plain.scores(b, h, q, k) / 1.5);
    const double modified =
        capped * 0.5 - 0.1 * static_cast<double>(q + 10 - k) + 3 + bias(h, 0, k);
    EXPECT_DOUBLE_EQ(result.capped(b, h, q, k), capped);
    EXPECT_DOUBLE_EQ(result.modified(b, h, q, k), modified);
    EXPECT_EQ(result.masked(b, h, q, k), k <= q ? result.modified(b, h, q, k) : -kInfinity);
    if (k > q) {
      EXPECT_EQ(result.weights(b, h, q, k), 0);
    }
  }
}

TEST(Attention, SinksAreLogitsWithoutValue) {
  const ForwardInputs in;
  const Tensor<double> sinks({4}, {0.5, -kInfinity, 100, 0});
  const auto plain = run(in);
  const auto result = run(in, {.sinks = sinks});
  for (std::int64_t h = 0; h < 4; ++h) {
    const double total = std::exp(plain.lse(0, h, 1)) + std::exp(sinks(h));
    EXPECT_NEAR(result.lse(0, h, 1), std::log(total), 1e-12);
    EXPECT_NEAR(result.weights(0, h, 1, 2),
                plain.weights(0, h, 1, 2) * std::exp(plain.lse(0, h, 1)) / total, 1e-12);
  }
}

TEST(Attention, DropoutZeroesAndScalesWeights) {
  const ForwardInputs in;
  const auto result = run(in, {.dropout = {.probability = 0.5F, .seed = 3}});
  int dropped = 0;
  for (std::size_t i = 0; i < result.weights.elements().size(); ++i) {
    const double weight = result.weights.elements()[i];
    const double kept = result.dropped.elements()[i];
    ASSERT_TRUE(kept == 0 || kept == 2 * weight);
    dropped += kept == 0 ? 1 : 0;
  }
  EXPECT_GT(dropped, 80);
  EXPECT_LT(dropped, 160);
  // The dropout of a query does not depend on the other queries of the call.
  const auto tail = reference::attention(
      in.query.view().slice(2, 3, 5), in.key, in.value,
      {.dropout = {.probability = 0.5F, .seed = 3}, .query_offset = 3}, Keep::kDropped);
  EXPECT_EQ(max_difference<double>(tail.dropped.view(), result.dropped.view().slice(2, 3, 5)), 0);
}

TEST(Attention, ARowThatSeesNothingIsZero) {
  const ForwardInputs in;
  const auto result = run(in, {.mask = Mask::rows({{0, 0}, {0, 6}, {3, 3}, {2, 1}, {0, 1}})});
  for (const std::int64_t q : {0, 2, 3}) {
    for_each_element(result.out.view().select(2, q), [](double out) { EXPECT_EQ(out, 0); });
    for_each_element(result.weights.view().select(2, q),
                     [](double weight) { EXPECT_EQ(weight, 0); });
    for_each_element(result.lse.view().select(2, q),
                     [](double lse) { EXPECT_EQ(lse, -kInfinity); });
  }
  EXPECT_NE(result.out(0, 0, 1, 0), 0);
}

TEST(Attention, ARowThatSeesOnlyASinkHasItsLse) {
  const ForwardInputs in;
  const Tensor<double> sinks({4}, {1, 2, 3, 4});
  const auto result =
      run(in, {.mask = Mask::rows({{0, 0}, {0, 6}, {0, 6}, {0, 6}, {0, 6}}), .sinks = sinks});
  EXPECT_EQ(result.lse(0, 2, 0), 3);
  EXPECT_EQ(result.out(0, 2, 0, 0), 0);
}

TEST(Attention, ScoresOfMinusInfinitySeeNothing) {
  ForwardInputs in;
  in.value(0, 0, 2, 0) = kNaN;  // Behind the key whose score becomes −infinity.
  AttentionOptions64 options;
  options.score_mod = [](auto score, int, int, int q_idx, int kv_idx) {
    return select(kv_idx == 2 || q_idx == 1, -kInfinity, score);
  };
  const auto result = run(in, options);
  EXPECT_THAT(result.out.elements(),
              Each(testing::Truly([](double x) { return std::isfinite(x); })));
  EXPECT_EQ(result.weights(0, 0, 0, 2), 0);
  EXPECT_EQ(result.lse(0, 0, 1), -kInfinity);
  EXPECT_EQ(result.out(0, 0, 1, 0), 0);
}

TEST(Attention, MaskedKeysChangeNoBit) {
  ForwardInputs in;
  const Mask mask = causal_top_left() & sliding_window(2, 0, Alignment::top_left());
  const auto clean = run(in, {.mask = mask});
  for (const double poison : {kNaN, kInfinity, -kInfinity}) {
    for_each_element(in.key.view().select(2, 5), [=](double& element) { element = poison; });
    for_each_element(in.value.view().select(2, 5), [=](double& element) { element = poison; });
    const auto poisoned =
        reference::attention(in.query, in.key, in.value, {.mask = mask}, Keep::kWeights);
    EXPECT_TRUE(same_bits(clean.out, poisoned.out));
    EXPECT_TRUE(same_bits(clean.lse, poisoned.lse));
    EXPECT_TRUE(same_bits(clean.weights, poisoned.weights));
  }
}

TEST(Attention, SeenNaNStaysInItsRow) {
  ForwardInputs in;
  in.query(0, 1, 2, 0) = kNaN;
  const auto result = run(in);
  for (std::int64_t q = 0; q < 5; ++q) {
    EXPECT_EQ(std::isfinite(result.out(0, 1, q, 0)), q != 2) << q;
  }
  // Also if the rest of the row is hidden.
  const Mask one_key = Mask::where([](int, int, int, int kv_idx) { return kv_idx == 5; });
  EXPECT_FALSE(std::isfinite(run(in, {.mask = one_key}).out(0, 1, 2, 0)));
}

TEST(Attention, TinyWeightsAreZero) {
  const Tensor<double> query({1, 1, 1, 1}, {1});
  const Tensor<double> key({1, 1, 2, 1}, {0, -70});
  const Tensor<double> value({1, 1, 2, 1}, {1, 1});
  const auto result = reference::attention(query, key, value, {}, Keep::kWeights);
  EXPECT_EQ(result.weights(0, 0, 0, 1), 0);  // exp(−70) < 2⁻¹⁰⁰
}

TEST(Attention, LargeScoresDoNotOverflow) {
  const Tensor<float> query({1, 1, 1, 1}, {1000});
  const Tensor<float> key({1, 1, 2, 1}, {1000, 999});
  const Tensor<float> value({1, 1, 2, 1}, {3, 5});
  EXPECT_EQ(attention(query, key, value)(0, 0, 0, 0), 3);
}

TEST(Attention, EmptySizes) {
  const auto shape_of = [](const Shape& q, const Shape& k, const Shape& v) {
    return attention(Tensor<float>(q), Tensor<float>(k), Tensor<float>(v)).shape();
  };
  EXPECT_EQ(shape_of({0, 2, 3, 4}, {0, 2, 5, 4}, {0, 2, 5, 6}), (Shape{0, 2, 3, 6}));
  EXPECT_EQ(shape_of({1, 2, 0, 4}, {1, 2, 5, 4}, {1, 2, 5, 6}), (Shape{1, 2, 0, 6}));
  EXPECT_EQ(shape_of({1, 0, 3, 4}, {1, 0, 5, 4}, {1, 0, 5, 6}), (Shape{1, 0, 3, 6}));
  EXPECT_EQ(shape_of({1, 2, 3, 4}, {1, 2, 5, 4}, {1, 2, 5, 0}), (Shape{1, 2, 3, 0}));
  const auto no_keys =
      reference::attention(Tensor<float>(Shape{1, 2, 3, 4}), Tensor<float>(Shape{1, 2, 0, 4}),
                           Tensor<float>(Shape{1, 2, 0, 6}));
  EXPECT_THAT(no_keys.out.elements(), Each(0.0F));
  EXPECT_THAT(no_keys.lse.elements(), Each(-std::numeric_limits<float>::infinity()));
  // Without a head dimension every score is 0.
  const Tensor<float> value({1, 1, 2, 1}, {1, 3});
  EXPECT_EQ(attention(Tensor<float>(Shape{1, 1, 1, 0}), Tensor<float>(Shape{1, 1, 2, 0}), value)(
                0, 0, 0, 0),
            2);
}

TEST(Attention, ReadsStridedViews) {
  const ForwardInputs in;
  // [B, T, H, D] memory, permuted.
  const auto stored = [](const Tensor<double>& tensor) {
    return to_tensor(tensor.view().permute({0, 2, 1, 3}));
  };
  const Tensor<double> query = stored(in.query);
  const Tensor<double> key = stored(in.key);
  const Tensor<double> value = stored(in.value);
  const auto permuted = [](const Tensor<double>& tensor) {
    return tensor.view().permute({0, 2, 1, 3});
  };
  EXPECT_TRUE(same_bits(attention(permuted(query), permuted(key), permuted(value)),
                        attention(in.query, in.key, in.value)));
}

TEST(Attention, RefusesShapesThatDoNotFit) {
  const auto call = [](const Shape& q, const Shape& k, const Shape& v) {
    return [=] { attention(Tensor<float>(q), Tensor<float>(k), Tensor<float>(v)); };
  };
  expect_refused(call({1, 1, 2, 128}, {1, 1, 3, 64}, {1, 1, 3, 8}), {"key head_dim", "64"});
  expect_refused(call({2, 1, 2, 4}, {1, 1, 3, 4}, {1, 1, 3, 4}), {"key batch", "1"});
  expect_refused(call({1, 1, 2, 4}, {1, 1, 3, 4}, {2, 1, 3, 4}), {"value batch", "2"});
  expect_refused(call({1, 1, 2, 4}, {1, 1, 3, 4}, {1, 1, 5, 4}), {"value kv_len", "5"});
  expect_refused(call({1, 2, 2, 4}, {1, 2, 3, 4}, {1, 1, 3, 4}), {"value num_kv_heads", "1"});
  expect_refused(call({1, 3, 2, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}), {"num_heads", "3"});
  expect_refused(call({1, 3, 2, 4}, {1, 0, 3, 4}, {1, 0, 3, 4}),
                 "expected a multiple of num_kv_heads, 0");
  expect_refused(call({2, 4}, {1, 1, 3, 4}, {1, 1, 3, 4}), {"query", "[2, 4]"});
  const Tensor<float> tensor(Shape{1, 1, 4, 4});
  expect_refused(
      [&] {
        attention(tensor.view().permute({0, 1, 3, 2}), tensor, tensor);
      },
      {"query", "stride 4"});
}

TEST(Attention, RefusesOptionsThatDoNotFit) {
  const ForwardInputs in;
  const auto with = [&](const AttentionOptions64& options) {
    return [&in, options] { run(in, options); };
  };
  const Tensor<double> wrong = normal<double>({5}, 1);
  expect_refused(with({.bias = wrong}), {"bias", "[5]"});
  expect_refused(with({.sinks = wrong}), {"sinks", "[5]"});
  expect_refused(with({.scale = kNaN}), {"scale", "nan"});
  expect_refused(with({.softcap = -1}), {"softcap", "-1"});
  expect_refused(with({.dropout = {.probability = 1.5F}}), {"dropout probability", "1.5"});
  expect_refused(with({.mask = causal()}), {"q_len", "5"});
}

TEST(Softmax, IsStable) {
  const Tensor<double> large({3}, {1000, 1001, 1002});
  const auto weights = reference::softmax(large);
  EXPECT_NEAR(weights(0), 0.09003057, 1e-8);
  EXPECT_NEAR(weights(1), 0.24472847, 1e-8);
  EXPECT_NEAR(weights(2), 0.66524096, 1e-8);
  EXPECT_THAT(elements_of(reference::naive_softmax(large)), Each(testing::IsNan()));
  const Tensor<double> small({2, 3}, {2, 1, 0.1, 1, 2, 3});
  EXPECT_LT(max_difference(reference::softmax(small), reference::naive_softmax(small)), 1e-15);
}

TEST(Softmax, EdgeCases) {
  const Tensor<double> nothing({2}, {-kInfinity, -kInfinity});
  EXPECT_THAT(elements_of(reference::softmax(nothing)), Each(0.0));
  EXPECT_EQ(reference::softmax(Tensor<float>(Shape{3, 0})).shape(), (Shape{3, 0}));
  expect_refused([] { reference::softmax(Tensor<float>(Shape{})); },
                 "softmax: the input is a scalar");
}

}  // namespace
}  // namespace heed
