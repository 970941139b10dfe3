// Linear attention on each instruction set, compared with the token-by-token reference, and the
// reference compared with its equations.
#include "attention/recurrent/attention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::expect_refused;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;
using testing_support::TargetTest;

struct RecurrentSizes {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t length = 1;
  std::int64_t head_dim = 8;
  std::int64_t value_dim = 8;
  std::int64_t num_states = 0;  // 0: as many as num_kv_heads

  std::int64_t states() const { return num_states == 0 ? num_kv_heads : num_states; }
};

// Keys of length 1, and gates and rates between 0 and 1, as models make them.
template <class Real>
struct RecurrentInputs {
  Tensor<Real> query, key, value, decay, beta, state;

  explicit RecurrentInputs(const RecurrentSizes& s)
      : query(normal<Real>({s.batch, s.num_heads, s.length, s.head_dim}, 1)),
        key(normal<Real>({s.batch, s.num_kv_heads, s.length, s.head_dim}, 2)),
        value(normal<Real>({s.batch, s.states(), s.length, s.value_dim}, 3)),
        decay(normal<Real>({s.batch, s.states(), s.length, s.head_dim}, 4)),
        beta(normal<Real>({s.batch, s.states(), s.length}, 5)),
        state(normal<Real>({s.batch, s.states(), s.head_dim, s.value_dim}, 6)) {
    for (Real& g : decay.elements()) g = -std::abs(g) / 4;
    for (Real& rate : beta.elements()) rate = 1 / (1 + std::exp(-rate));
    for (std::int64_t row = 0; s.head_dim > 0 && row < key.num_elements() / s.head_dim; ++row) {
      const auto elements = key.elements().subspan(static_cast<std::size_t>(row * s.head_dim),
                                                   static_cast<std::size_t>(s.head_dim));
      Real squares = 0;
      for (const Real x : elements) squares += x * x;
      for (Real& x : elements) x /= std::sqrt(squares);
    }
  }

  // Returns the four rules, each without and with an initial state.
  std::vector<BasicLinearAttentionOptions<Real>> rules() const {
    std::vector<BasicLinearAttentionOptions<Real>> all;
    for (const bool from_state : {false, true}) {
      for (const int rule : {0, 1, 2, 3}) {
        BasicLinearAttentionOptions<Real> options;
        if (rule % 2 == 1) options.decay = decay;
        if (rule / 2 == 1) options.beta = beta;
        if (from_state) options.state = state;
        all.push_back(options);
      }
    }
    return all;
  }
};

recurrent::Problem<float> problem_of(FloatView query, FloatView key, FloatView value,
                                     const LinearAttentionOptions& options) {
  const auto sizes = recurrent::check_sizes("test", query, key, value);
  return {sizes, recurrent::check_terms("test", sizes, options), query, key, value};
}

class LinearKernels : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(LinearKernels);

void expect_close(const kernels::KernelTable& table, const RecurrentSizes& sizes,
                  const std::string& what) {
  const RecurrentInputs<float> in(sizes);
  int rule = 0;
  for (const auto& options : in.rules()) {
    const auto found =
        recurrent::attend_by_kernels(table, problem_of(in.query, in.key, in.value, options));
    const auto expected = reference::linear_attention(in.query, in.key, in.value, options);
    EXPECT_LE(max_difference(found.out, expected.out), 3e-5) << what << ", rule " << rule;
    EXPECT_LE(max_difference(found.state, expected.state), 3e-5) << what << ", rule " << rule;
    const ThreadLimit limit(1);
    const auto alone =
        recurrent::attend_by_kernels(table, problem_of(in.query, in.key, in.value, options));
    EXPECT_TRUE(same_bits(alone.out, found.out)) << what << ", rule " << rule;
    EXPECT_TRUE(same_bits(alone.state, found.state)) << what << ", rule " << rule++;
  }
}

TEST_P(LinearKernels, AwkwardShapes) {
  for (const std::int64_t length : {0, 1, 2, 7, 65}) {
    for (const std::int64_t head_dim : {0, 1, 5, 16, 33}) {
      for (const std::int64_t value_dim : {0, 1, 4, 17, 64, 70}) {
        expect_close(table(), {.length = length, .head_dim = head_dim, .value_dim = value_dim},
                     std::to_string(length) + ", " + std::to_string(head_dim) + ", " +
                         std::to_string(value_dim));
      }
    }
  }
}

// Repeats each head `times` times: [batch, heads · times, …].
Tensor<float> repeated_heads(const Tensor<float>& tensor, std::int64_t times) {
  const std::int64_t heads = tensor.extent(1);
  Tensor<float> result({tensor.extent(0), heads * times, tensor.extent(2), tensor.extent(3)});
  const std::int64_t size = tensor.extent(2) * tensor.extent(3);
  for (std::int64_t i = 0; i < result.extent(0) * heads * times; ++i) {
    std::copy_n(tensor.data() + i / times * size, size, result.data() + i * size);
  }
  return result;
}

// Qwen3-Next has 16 heads of queries and keys and 32 of values.
TEST_P(LinearKernels, MoreHeadsOfValuesThanOfKeys) {
  for (const auto& [num_heads, num_kv_heads, num_states] :
       {std::array<std::int64_t, 3>{2, 2, 6}, {4, 2, 4}, {2, 1, 4}, {4, 1, 2}, {6, 2, 6}}) {
    const RecurrentSizes sizes{.batch = 2,
                               .num_heads = num_heads,
                               .num_kv_heads = num_kv_heads,
                               .length = 9,
                               .value_dim = 20,
                               .num_states = num_states};
    expect_close(table(), sizes, std::to_string(num_states) + " states");
    const RecurrentInputs<float> in(sizes);
    const std::int64_t out_heads = std::max(num_heads, num_states);
    const Tensor<float> query = repeated_heads(in.query, out_heads / num_heads);
    const Tensor<float> key = repeated_heads(in.key, num_states / num_kv_heads);
    for (const auto& options : in.rules()) {
      const auto found =
          recurrent::attend_by_kernels(table(), problem_of(in.query, in.key, in.value, options));
      const auto expected =
          recurrent::attend_by_kernels(table(), problem_of(query, key, in.value, options));
      EXPECT_TRUE(same_bits(found.out, expected.out)) << num_states;
      EXPECT_TRUE(same_bits(found.state, expected.state)) << num_states;
    }
  }
}

TEST_P(LinearKernels, GroupedHeadsInABatch) {
  expect_close(table(),
               {.batch = 2, .num_heads = 6, .num_kv_heads = 2, .length = 9, .value_dim = 20},
               "groups of three");
  expect_close(table(), {.batch = 0, .length = 3}, "no batch");
  expect_close(table(), {.num_heads = 0, .num_kv_heads = 2, .length = 3}, "no query");
}

TEST_P(LinearKernels, ViewsAreTheirTensors) {
  const std::int64_t length = 6;
  const auto query = normal<float>({2, length, 4, 8}, 1);  // [batch, length, heads, dim]
  const auto key = normal<float>({2, length, 2, 8}, 2);
  const auto value = normal<float>({2, length, 2, 12}, 3);
  const auto decay = normal<float>({2, length, 2}, 4);  // one number per head
  const auto beta = normal<float>({2, length, 1}, 5);   // one for all heads
  LinearAttentionOptions by_view;
  by_view.decay = decay.view().permute({0, 2, 1}).to_rank(4).permute({1, 2, 3, 0});
  by_view.beta = beta.view().permute({0, 2, 1});
  const auto head_view = [](const Tensor<float>& x) { return x.view().permute({0, 2, 1, 3}); };
  const auto found = recurrent::attend_by_kernels(
      table(), problem_of(head_view(query), head_view(key), head_view(value), by_view));
  const auto full_decay = to_tensor(by_view.decay->broadcast_to({2, 2, length, 8}));
  const auto full_beta = to_tensor(by_view.beta->broadcast_to({2, 2, length}));
  LinearAttentionOptions by_tensor;
  by_tensor.decay = full_decay;
  by_tensor.beta = full_beta;
  const auto q = to_tensor(head_view(query));
  const auto k = to_tensor(head_view(key));
  const auto v = to_tensor(head_view(value));
  const auto expected = recurrent::attend_by_kernels(table(), problem_of(q, k, v, by_tensor));
  EXPECT_TRUE(same_bits(found.out, expected.out));
  EXPECT_TRUE(same_bits(found.state, expected.state));
}

TEST_P(LinearKernels, TokensMayComeInManyCalls) {
  const RecurrentInputs<float> in(
      {.num_heads = 2, .num_kv_heads = 1, .length = 11, .value_dim = 40});
  for (const auto& options : in.rules()) {
    const auto whole =
        recurrent::attend_by_kernels(table(), problem_of(in.query, in.key, in.value, options));
    Tensor<float> state = options.state ? to_tensor(*options.state) : Tensor<float>({1, 1, 8, 40});
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 6}, {6, 11}}) {
      LinearAttentionOptions part = options;
      part.state = state;
      if (part.decay) part.decay = part.decay->slice(2, begin, end);
      if (part.beta) part.beta = part.beta->slice(2, begin, end);
      auto output = recurrent::attend_by_kernels(
          table(),
          problem_of(in.query.view().slice(2, begin, end), in.key.view().slice(2, begin, end),
                     in.value.view().slice(2, begin, end), part));
      EXPECT_TRUE(same_bits(output.out, to_tensor(whole.out.view().slice(2, begin, end))));
      state = std::move(output.state);
    }
    EXPECT_TRUE(same_bits(state, whole.state));
  }
}

TEST_P(LinearKernels, FeatureMaps) {
  for (const FeatureMap map : {FeatureMap::kEluPlusOne, FeatureMap::kRelu}) {
    for (const bool causal : {false, true}) {
      for (const bool normalized : {false, true}) {
        for (const std::int64_t dim : {1, 17, 64}) {
          const FeatureMapOptions options{map, causal, normalized};
          const auto query = normal<float>({2, 4, 13, dim}, 1);
          const auto key = normal<float>({2, 2, causal ? 13 : 19, dim}, 2);
          const auto value = normal<float>({2, 2, causal ? 13 : 19, 21}, 3);
          const auto found = recurrent::attend_by_features(table(), query, key, value, options);
          const auto expected = reference::feature_map_attention(query, key, value, options);
          double scale = 1;
          for (const float x : expected.elements()) scale = std::max(scale, std::abs(double{x}));
          EXPECT_LE(max_difference(found, expected), 2e-5 * scale)
              << static_cast<int>(map) << causal << normalized << dim;
        }
      }
    }
  }
}

TEST(LinearAttention, IsItsEquations) {
  // One dimension of each: S_t by hand.
  const Tensor<double> query({1, 1, 2, 1}, {2, 3});
  const Tensor<double> key({1, 1, 2, 1}, {0.5, -1});
  const Tensor<double> value({1, 1, 2, 1}, {4, 6});
  const Tensor<double> decay({1, 1, 2, 1}, {-1, -0.5});
  const Tensor<double> beta({1, 1, 2}, {0.25, 0.75});
  const Tensor<double> state({1, 1, 1, 1}, {10});
  const auto run = [&](bool gated, bool delta) {
    LinearAttentionOptions64 options;
    if (gated) options.decay = decay;
    if (delta) options.beta = beta;
    options.state = state;
    options.scale = 0.5;
    return linear_attention(query, key, value, options);
  };
  const auto expect = [](const LinearAttentionOutput<double>& found, double first, double second) {
    EXPECT_NEAR(found.out(0, 0, 0, 0), 0.5 * 2 * first, 1e-14);
    EXPECT_NEAR(found.out(0, 0, 1, 0), 0.5 * 3 * second, 1e-14);
    EXPECT_NEAR(found.state(0, 0, 0, 0), second, 1e-14);
  };
  expect(run(false, false), 10 + 2, 12 - 6);
  const double gated = std::exp(-1.0) * 10 + 2;
  expect(run(true, false), gated, std::exp(-0.5) * gated - 6);
  const double delta = 10 + 0.25 * 0.5 * (4 - 0.5 * 10);
  expect(run(false, true), delta, delta - 0.75 * (6 + delta));
  const double kept = std::exp(-1.0) * 10;
  const double both = kept + 0.25 * 0.5 * (4 - 0.5 * kept);
  const double kept_again = std::exp(-0.5) * both;
  expect(run(true, true), both, kept_again - 0.75 * (6 + kept_again));
}

// Without gates and rates it is causal attention with the products as weights.
TEST(LinearAttention, LinearRuleIsAttentionWithoutSoftmax) {
  const RecurrentInputs<double> in({.num_heads = 2, .num_kv_heads = 1, .length = 5});
  const auto found = linear_attention(in.query, in.key, in.value);
  for (std::int64_t t = 0; t < 5; ++t) {
    double expected = 0;
    for (std::int64_t k = 0; k <= t; ++k) {
      double product = 0;
      for (std::int64_t i = 0; i < 8; ++i) product += in.query(0, 1, t, i) * in.key(0, 0, k, i);
      expected += product / std::sqrt(8.0) * in.value(0, 0, k, 3);
    }
    EXPECT_NEAR(found.out(0, 1, t, 3), expected, 1e-14);
  }
}

TEST(LinearAttention, HalfPrecisionIsRoundedOnce) {
  const RecurrentInputs<float> in({.length = 4});
  Tensor<BFloat16> half[3];
  Tensor<float> wide[3];
  const Tensor<float>* tensors[] = {&in.query, &in.key, &in.value};
  for (int i = 0; i < 3; ++i) {
    half[i] = Tensor<BFloat16>(tensors[i]->shape());
    wide[i] = Tensor<float>(tensors[i]->shape());
    for (std::size_t e = 0; e < tensors[i]->elements().size(); ++e) {
      half[i].elements()[e] = BFloat16(tensors[i]->elements()[e]);
      wide[i].elements()[e] = half[i].elements()[e];
    }
  }
  const LinearAttentionOptions options = in.rules()[7];
  const auto found = linear_attention(half[0], half[1], half[2], options);
  const auto expected = linear_attention(wide[0], wide[1], wide[2], options);
  EXPECT_TRUE(same_bits(found.state, expected.state));
  for (std::size_t e = 0; e < found.out.elements().size(); ++e) {
    EXPECT_EQ(found.out.elements()[e].bits(), BFloat16(expected.out.elements()[e]).bits());
  }
}

// φ(q) = 0 where every feature is cut off.
TEST(FeatureMapAttention, AQueryThatMatchesNothingGetsNothing) {
  const Tensor<float> query({1, 1, 2, 2}, {-1, -2, 1, 0});
  const auto key = normal<float>({1, 1, 2, 2}, 1);
  const auto value = normal<float>({1, 1, 2, 3}, 2);
  const auto out = feature_map_attention(query, key, value, {.feature_map = FeatureMap::kRelu});
  for (std::int64_t j = 0; j < 3; ++j) EXPECT_EQ(out(0, 0, 0, j), 0);
}

TEST(FeatureMapAttention, WeightsSumToOne) {
  const auto query = normal<float>({1, 2, 9, 4}, 1);
  const auto key = normal<float>({1, 2, 9, 4}, 2);
  Tensor<float> ones({1, 2, 9, 1});
  for (float& x : ones.elements()) x = 1;
  for (const bool causal : {false, true}) {
    const auto out = feature_map_attention(query, key, ones, {.causal = causal});
    for (const float x : out.elements()) EXPECT_NEAR(x, 1, 1e-6);
  }
}

TEST(LinearAttention, RefusesMisuse) {
  const Tensor<float> x({2, 3, 4, 8});
  const Tensor<float> two_heads({2, 2, 4, 8});
  const auto call = [&](const LinearAttentionOptions& options) {
    return [&x, options] { linear_attention(x, x, x, options); };
  };
  expect_refused([&] { linear_attention(x, x.view().slice(2, 0, 3), x.view().slice(2, 0, 3)); },
                 {"query", "4"});
  expect_refused([&] { linear_attention(x, two_heads, two_heads); }, {"num_heads", "3"});
  const Tensor<float> six({2, 6, 4, 8});
  expect_refused([&] { linear_attention(six, two_heads, six.view().slice(1, 0, 4)); },
                 {"query", "6"});
  expect_refused([&] { linear_attention(x.view().select(0, 0), x, x); }, {"query", "[3, 4, 8]"});
  const Tensor<float> other({2, 3, 4, 7});
  expect_refused(call({.decay = other}), {"decay", "[2, 3, 4, 7]"});
  const Tensor<float> turned({2, 3, 8, 4});
  expect_refused(call({.decay = turned.view().permute({0, 1, 3, 2})}), {"decay", "stride 4"});
  expect_refused(call({.beta = other}), {"beta", "[2, 3, 4, 7]"});
  expect_refused(call({.state = other}), {"state", "[2, 3, 4, 7]"});
  expect_refused(call({.scale = std::numeric_limits<float>::infinity()}), {"scale", "inf"});
  expect_refused([&] { feature_map_attention(x, other.view().slice(3, 0, 7), x, {}); },
                 {"key head_dim", "7"});
  const auto shorter = x.view().slice(2, 0, 3);
  expect_refused([&] { feature_map_attention(x, shorter, shorter, {.causal = true}); },
                 {"q_len", "4"});
  const LinearAttentionLoss<float> loss{.grad_out = other};
  expect_refused([&] { linear_attention_backward(loss, x, x, x); }, {"grad_out", "[2, 3, 4, 7]"});
}

}  // namespace
}  // namespace heed
