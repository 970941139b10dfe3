// Gradients of half precision, from an out that is stored with its rounding error.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "heed/attention/backward.h"
#include "heed/attention/plan.h"
#include "heed/attention/reference.h"
#include "heed/core/data_type.h"
#include "heed/core/parallel.h"
#include "support/exact.h"
#include "support/kernel_tables.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::converted;
using testing_support::exactly;
using testing_support::ExactOptions;
using testing_support::Judgement;
using testing_support::largest_magnitude;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

template <class Half>
struct HalfProblem {
  Tensor<Half> query, key, value, grad_out;

  explicit HalfProblem(std::int64_t q_len, std::int64_t kv_len, std::int64_t value_dim = 24) {
    const auto half = [](const Shape& shape, std::uint32_t seed) {
      return converted<Half>(normal<float>(shape, seed));
    };
    query = half({1, 4, q_len, 32}, 1);
    key = half({1, 2, kv_len, 32}, 2);
    value = half({1, 2, kv_len, value_dim}, 3);
    grad_out = half({1, 4, q_len, value_dim}, 4);
  }

  AttentionOutput<Half, float> forward(const AttentionOptions& options = {}) const {
    return attention_with_lse(query, key, value, options);
  }
  AttentionGradients<Half, float> backward(const AttentionOutputView<Half, float>& forward,
                                           const AttentionOptions& options = {}) const {
    return attention_backward(grad_out, query, key, value, forward, options);
  }
  AttentionOutput<float> forward_in_float(const AttentionOptions& options = {}) const {
    return attention_with_lse(converted<float>(query), converted<float>(key),
                              converted<float>(value), options);
  }
  // Plain loops, which round the operands of bfloat16 products in the same places.
  AttentionGradients<float> by_loops(const AttentionOptions& options) const {
    if constexpr (std::is_same_v<Half, BFloat16>) {
      if (testing_support::multiplies_pairs()) {
        return reference::attention_backward(grad_out, query, key, value, options);
      }
    }
    return reference::attention_backward(converted<float>(grad_out), converted<float>(query),
                                         converted<float>(key), converted<float>(value), options);
  }
  AttentionGradients<double> exact(const AttentionOptions& options) const {
    const ExactOptions exact_options(options);
    return reference::attention_backward(
        exactly(converted<float>(grad_out)), exactly(converted<float>(query)),
        exactly(converted<float>(key)), exactly(converted<float>(value)), *exact_options);
  }
};

template <class Half>
bool same_gradients(const AttentionGradients<Half, float>& a,
                    const AttentionGradients<Half, float>& b) {
  return same_bits(a.query, b.query) && same_bits(a.key, b.key) && same_bits(a.value, b.value) &&
         same_bits(a.bias, b.bias) && same_bits(a.sinks, b.sinks);
}

template <class Half>
class HalfBackward : public testing::Test {};
using HalfTypes = testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(HalfBackward, HalfTypes);

// The sum out + out_low equals the float out, rounded to the precision of both.
TEST(OutLow, IsWhatOutLacks) {
  const HalfProblem<Float16> problem(70, 300, 19);
  const auto whole = problem.forward_in_float();
  const auto found = problem.forward();
  ASSERT_EQ(found.out_low.shape(), found.out.shape());
  for (std::int64_t i = 0; i < whole.out.num_elements(); ++i) {
    const float number = whole.out.data()[i];
    const Float16 rounded(number);
    ASSERT_EQ(found.out.data()[i].bits(), rounded.bits());
    ASSERT_EQ(found.out_low.data()[i].bits(), Float16(number - float{rounded}).bits());
  }
}

TEST(OutLow, IsMadeOfHalfPrecisionAlone) {
  const auto floats = normal<float>({1, 1, 4, 8}, 1);
  const auto doubles = normal<double>({1, 1, 4, 8}, 1);
  const auto halves = converted<BFloat16>(floats);
  EXPECT_TRUE(attention_with_lse(floats, floats, floats).out_low.empty());
  EXPECT_TRUE(attention_with_lse(doubles, doubles, doubles).out_low.empty());
  EXPECT_TRUE(attention_with_lse(floats, halves, halves).out_low.empty());
  EXPECT_FALSE(attention_with_lse(halves, halves, halves).out_low.empty());
  const AttentionOptions exact{.precision = Precision::kExact};
  EXPECT_TRUE(attention_with_lse(halves, halves, halves, exact).out_low.empty());
}

// Contains a value beyond the type's range, a NaN, and a row that sees nothing.
TEST(OutLow, IsZeroWhereOutIsNotFinite) {
  HalfProblem<Float16> problem(3, 40, 20);
  for (std::int64_t k = 0; k < 40; ++k) problem.value(0, 0, k, 2) = Float16(60000.0F);
  problem.value(0, 0, 5, 18) = Float16(testing_support::kNaN);
  const AttentionOptions options{
      .mask = Mask::where([](auto, auto, auto q, auto) { return q > 0; }),
      .dropout = {.probability = 0.5F, .seed = 1}};
  const auto found = problem.forward(options);
  int infinite = 0;
  for (std::int64_t i = 0; i < found.out.num_elements(); ++i) {
    const float out{found.out.data()[i]};
    const float low{found.out_low.data()[i]};
    EXPECT_TRUE(std::isfinite(low));
    EXPECT_TRUE(low == 0 || (out != 0 && std::isfinite(out))) << out << " " << low;
    infinite += std::isinf(out) ? 1 : 0;
  }
  EXPECT_GT(infinite, 0);
  for (std::int64_t d = 0; d < 20; ++d) EXPECT_EQ(float{found.out_low(0, 0, 0, d)}, 0);
}

// The scores are too large for the running softmax, and equal: out is the mean of the values.
TYPED_TEST(HalfBackward, RowsOfLargeScoresHaveItToo) {
  HalfProblem<TypeParam> problem(20, 200);
  for (auto& number : problem.query.elements()) number = TypeParam(8192.0F);
  for (auto& number : problem.key.elements()) number = TypeParam(1.0F);
  const AttentionOptions options{.scale = 16.0F};
  const auto whole = problem.forward_in_float(options);
  const auto found = problem.forward(options);
  for (std::int64_t i = 0; i < whole.out.num_elements(); ++i) {
    const float sum = float{found.out.data()[i]} + float{found.out_low.data()[i]};
    ASSERT_NEAR(sum, whole.out.data()[i], 0x1p-16 * std::abs(sum) + 0x1p-24);
  }
  EXPECT_GT(largest_magnitude(exactly(converted<float>(found.out_low))), 0);
}

// The gradients are rounded to half precision; those of tensors in the options are not.
TYPED_TEST(HalfBackward, IsAsAccurateAsPlainLoops) {
  const bool is_float16 = std::is_same_v<TypeParam, Float16>;
  for (const std::int64_t kv_len : {130, 1100}) {
    SCOPED_TRACE(kv_len);
    const HalfProblem<TypeParam> problem(130, kv_len);
    const auto bias = normal<float>({4, 130, kv_len}, 6);
    const AttentionOptions options{.mask = causal_bottom_right(), .bias = bias};
    const auto found = problem.backward(problem.forward(options), options);
    const auto plain = problem.by_loops(options);
    const auto exact = problem.exact(options);
    const auto judge = [](const char* name, const auto& is, const Tensor<float>& loops,
                          const Tensor<double>& should_be) {
      return Judgement{}(name, converted<float>(is), converted<float>(converted<TypeParam>(loops)),
                         should_be);
    };
    EXPECT_EQ(judge("query", found.query, plain.query, exact.query), "");
    EXPECT_EQ(judge("key", found.key, plain.key, exact.key), "");
    EXPECT_EQ(judge("value", found.value, plain.value, exact.value), "");
    // A bfloat16 and its rounding error have 16 bits together.
    const Judgement of_bias{.always_allowed =
                                (is_float16 ? 0 : 0x1p-17) * largest_magnitude(exact.bias)};
    EXPECT_EQ(of_bias("bias", found.bias, plain.bias, exact.bias), "");
  }
}

TYPED_TEST(HalfBackward, HasTheSameBitsOnThreads) {
  const HalfProblem<TypeParam> problem(700, 500, 35);
  const auto sinks = normal<float>({4}, 7);
  const AttentionOptions options{.mask = causal_bottom_right(), .sinks = sinks};
  set_num_threads(1);
  const auto forward = problem.forward(options);
  const auto once = problem.backward(forward, options);
  set_num_threads(4);
  const auto again = problem.forward(options);
  EXPECT_TRUE(same_bits(again.out, forward.out) && same_bits(again.out_low, forward.out_low));
  EXPECT_TRUE(same_gradients(problem.backward(forward, options), once));
  set_num_threads(0);
}

// Without out_low, out is computed again in float.
TYPED_TEST(HalfBackward, WhatOutLacksMayBeMissing) {
  const HalfProblem<TypeParam> problem(130, 300);
  const auto forward = problem.forward();
  const auto with = problem.backward(forward);
  const auto without = problem.backward({forward.out, forward.lse, forward.lse_low});
  const auto difference = [](const Tensor<TypeParam>& a, const Tensor<TypeParam>& b) {
    return max_difference(converted<float>(a), converted<float>(b)) /
           largest_magnitude(exactly(converted<float>(a)));
  };
  const double unit = std::is_same_v<TypeParam, Float16> ? 0x1p-10 : 0x1p-7;
  EXPECT_LE(difference(with.query, without.query), unit);
  EXPECT_LE(difference(with.key, without.key), unit);
  EXPECT_TRUE(same_bits(with.value, without.value));
  const Tensor<TypeParam> wrong({1, 4, 130, 23});
  EXPECT_THAT(([&] {
                problem.backward({forward.out, forward.lse, forward.lse_low, wrong});
              }),
              Refuses("forward.out_low", "[1, 4, 130, 23]"));
}

// Computes in float everywhere and does not read the stored out of another precision.
TYPED_TEST(HalfBackward, ExactGradientsAreOfAnOutThatIsComputedAgain) {
  const HalfProblem<TypeParam> problem(60, 150);
  const AttentionOptions exact{.precision = Precision::kExact};
  const auto forward = problem.forward(exact);
  const auto kept = problem.forward().out_low;
  EXPECT_TRUE(
      same_gradients(problem.backward({forward.out, forward.lse, forward.lse_low, kept}, exact),
                     problem.backward(forward, exact)));
}

// One key has the whole weight: the gradients of scores are exactly 0, without rounding errors.
TYPED_TEST(HalfBackward, OfASingleKeyIsExactlyZero) {
  const HalfProblem<TypeParam> problem(50, 1);
  for (const auto& gradient :
       {problem.backward(problem.forward()).query, problem.backward(problem.forward()).key}) {
    for (const TypeParam number : gradient.elements()) EXPECT_EQ(float{number}, 0);
  }
}

TYPED_TEST(HalfBackward, APlanKeepsTheSame) {
  const HalfProblem<TypeParam> problem(90, 140, 32);
  const AttentionPlan planned = plan({.num_heads = 4,
                                      .num_kv_heads = 2,
                                      .q_len = 90,
                                      .kv_len = 140,
                                      .head_dim = 32,
                                      .value_dim = 32,
                                      .dtype = data_type_of<TypeParam>()});
  const auto expected = problem.forward();
  Tensor<TypeParam> out(expected.out.shape());
  Tensor<TypeParam> memory({1, 4, 90, 40});  // rows with gaps
  const auto low = memory.view().slice(3, 0, 32);
  Tensor<float> lse({1, 4, 90});
  planned.run_into({.out = out, .lse = lse, .out_low = low}, problem.query, problem.key,
                   problem.value);
  EXPECT_TRUE(same_bits(out, expected.out));
  EXPECT_TRUE(same_bits(to_tensor(low), expected.out_low));
  EXPECT_TRUE(same_gradients(
      planned.run_backward(problem.grad_out, problem.query, problem.key, problem.value, expected),
      problem.backward(expected)));
  Tensor<TypeParam> wrong({1, 4, 90, 31});
  EXPECT_THAT(([&] {
                planned.run_into({.out = out, .out_low = wrong}, problem.query, problem.key,
                                 problem.value);
              }),
              Refuses("out_low", "[1, 4, 90, 31]"));
}

// The rounding error of a float out is 0.
TEST(OutLow, OfFloatsIsZero) {
  const auto x = normal<float>({1, 1, 9, 4}, 1);
  const AttentionPlan planned = plan({.q_len = 9, .kv_len = 9, .head_dim = 4, .value_dim = 4});
  Tensor<float> out({1, 1, 9, 4});
  Tensor<float> low = normal<float>({1, 1, 9, 4}, 2);
  planned.run_into({.out = out, .out_low = low}, x, x, x);
  EXPECT_TRUE(same_bits(low, Tensor<float>({1, 1, 9, 4})));
  EXPECT_TRUE(same_bits(out, attention(x, x, x)));
}

}  // namespace
}  // namespace heed
