#include "heed/attention/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>

#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ThrowsMessage;
using testing_support::converted;
using testing_support::max_difference;
using testing_support::Message;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

template <class Real>
struct Call {
  Tensor<Real> query = normal<Real>({2, 4, 3, 5}, 1);
  Tensor<Real> key = normal<Real>({2, 2, 6, 5}, 2);
  Tensor<Real> value = normal<Real>({2, 2, 6, 7}, 3);
  Tensor<Real> grad_out = normal<Real>({2, 4, 3, 7}, 4);
  BasicAttentionOptions<Real> options;
  AttentionOutput<Real> forward = attention_with_lse(query, key, value, options);

  AttentionGradients<Real> operator()() const {
    return attention_backward(grad_out, query, key, value, forward, options);
  }
};

void expect_refused(const std::function<void(Call<float>&)>& spoil, const Message& text) {
  Call<float> call;
  spoil(call);
  EXPECT_THAT([&] { call(); }, ThrowsMessage<InvalidArgument>(text));
}

TEST(Backward, RefusesWhatDoesNotFit) {
  expect_refused([](Call<float>& call) { call.grad_out = call.query; },
                 {"grad_out", "[2, 4, 3, 5]"});
  expect_refused([](Call<float>& call) { call.forward.out = call.query; },
                 {"forward.out", "[2, 4, 3, 5]"});
  expect_refused(
      [](Call<float>& call) {
        call.forward.lse = Tensor<float>({2, 4});
      },
      {"forward.lse", "[2, 4]"});
  expect_refused(
      [](Call<float>& call) {
        call.value = Tensor<float>({2, 2, 5, 7});
      },
      {"value kv_len", "5"});
  expect_refused([](Call<float>& call) { call.options.softcap = -1; }, {"softcap", "-1"});
}

TEST(Backward, OfDoublesIsCloseToTheReference) {
  const Call<double> call;
  const auto found = call();
  const auto expected =
      reference::attention_backward(call.grad_out, call.query, call.key, call.value);
  EXPECT_LT(max_difference(found.query, expected.query), 1e-14);
  EXPECT_LT(max_difference(found.key, expected.key), 1e-14);
  EXPECT_LT(max_difference(found.value, expected.value), 1e-14);
  EXPECT_TRUE(found.bias.empty());
  EXPECT_TRUE(found.sinks.empty());
}

// Half-precision tensors are converted to float; tensors in the options get float gradients.
template <class Half>
void expect_half_gradients_are_those_of_floats() {
  const auto half = [](const Shape& shape, std::uint32_t seed) {
    return converted<Half>(normal<float>(shape, seed));
  };
  const auto query = half({2, 4, 70, 20}, 1);
  const auto key = half({2, 2, 150, 20}, 2);
  const auto value = half({2, 2, 150, 9}, 3);
  const auto grad_out = half({2, 4, 70, 9}, 4);
  const auto slopes = normal<float>({4}, 5);
  const auto bias = normal<float>({4, 1, 150}, 6);
  const auto sinks = normal<float>({4}, 7);
  const AttentionOptions options{.mask = causal_bottom_right(),
                                 .alibi_slopes = slopes,
                                 .bias = bias,
                                 .sinks = sinks,
                                 .softcap = 4,
                                 .dropout = {.probability = 0.25F, .seed = 3},
                                 .precision = Precision::kExact};
  const auto forward = attention_with_lse(query, key, value, options);
  const auto found = attention_backward(grad_out, query, key, value, forward, options);
  const Tensor<float> floats[] = {converted<float>(query), converted<float>(key),
                                  converted<float>(value)};
  const auto expected =
      attention_backward(converted<float>(grad_out), floats[0], floats[1], floats[2],
                         attention_with_lse(floats[0], floats[1], floats[2], options), options);
  EXPECT_TRUE(same_bits(found.query, converted<Half>(expected.query)));
  EXPECT_TRUE(same_bits(found.key, converted<Half>(expected.key)));
  EXPECT_TRUE(same_bits(found.value, converted<Half>(expected.value)));
  EXPECT_TRUE(same_bits(found.alibi_slopes, expected.alibi_slopes));
  EXPECT_TRUE(same_bits(found.bias, expected.bias));
  EXPECT_TRUE(same_bits(found.sinks, expected.sinks));
}

TEST(Backward, OfHalvesIsThatOfFloatsRounded) {
  expect_half_gradients_are_those_of_floats<Float16>();
  expect_half_gradients_are_those_of_floats<BFloat16>();
}

TEST(Backward, OfFloatsIsCloseToIt) {
  const Call<float> call;
  const auto found = call();
  const auto expected =
      reference::attention_backward(call.grad_out, call.query, call.key, call.value);
  EXPECT_LE(max_difference(found.query, expected.query), 1e-5);
  EXPECT_LE(max_difference(found.key, expected.key), 1e-5);
  EXPECT_LE(max_difference(found.value, expected.value), 1e-5);
}

// Every weight is 1/3. A float lse of 2.7e3 is off by up to 1.2e-4, one of 1e8 by up to 4.
TEST(AttentionBackward, WeightsAreRightWhereAFloatCannotHoldTheLse) {
  const auto filled = [](std::int64_t length, float element) {
    Tensor<float> result({1, 1, length, 8});
    std::fill(result.elements().begin(), result.elements().end(), element);
    return result;
  };
  const auto query = filled(4, 1);
  const auto value = normal<float>({1, 1, 3, 5}, 2);
  const auto grad_out = normal<float>({1, 1, 4, 5}, 3);
  for (const float size : {0.0F, 2.7e3F, -2.7e3F, 1e8F}) {
    const auto key = filled(3, size / 8);
    const AttentionOptions options{.scale = 1.0F};
    const auto forward = attention_with_lse(query, key, value, options);
    const auto found = attention_backward(grad_out, query, key, value, forward, options);
    for (std::int64_t d = 0; d < 5; ++d) {
      double sum = 0;
      for (std::int64_t q = 0; q < 4; ++q) sum += double{grad_out(0, 0, q, d)};
      for (std::int64_t k = 0; k < 3; ++k) {
        EXPECT_NEAR(found.value(0, 0, k, d), sum / 3, 1e-6) << size;
      }
    }
  }
}

// An lse without its low part is used as it is.
TEST(AttentionBackward, TheLowPartOfTheLseMayBeMissing) {
  const auto x = normal<float>({1, 1, 4, 8}, 1);
  const auto forward = attention_with_lse(x, x, x);
  const auto with = attention_backward(x, x, x, x, forward);
  const auto without = attention_backward(x, x, x, x, {forward.out, forward.lse});
  EXPECT_LT(max_difference(with.key, without.key), 1e-6);
  const Tensor<float> wrong({1, 4});
  EXPECT_THAT(
      [&] {
        attention_backward(x, x, x, x, {forward.out, forward.lse, wrong});
      },
      Refuses("forward.lse_low", "[1, 4]"));
}

}  // namespace
}  // namespace heed
