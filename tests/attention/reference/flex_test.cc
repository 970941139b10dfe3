// Attention with functions of whole matrices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;

const Tensor<double> kQuery = normal<double>({2, 4, 3, 8}, 1);
const Tensor<double> kKey = normal<double>({2, 2, 5, 8}, 2);
const Tensor<double> kValue = normal<double>({2, 2, 5, 6}, 3);

TEST(FlexAttention, WithoutFunctionsIsAttention) {
  EXPECT_LE(max_difference(reference::flex_attention(kQuery, kKey, kValue),
                           reference::attention(kQuery, kKey, kValue).out),
            1e-15);
  EXPECT_LE(max_difference(reference::flex_attention(kQuery, kKey, kValue, {.scale = 0.3}),
                           reference::attention(kQuery, kKey, kValue, {.scale = 0.3}).out),
            1e-15);
}

TEST(FlexAttention, ScoresMayBeMasked) {
  auto value = kValue;
  value(0, 0, 4, 0) = std::numeric_limits<double>::quiet_NaN();
  const auto out = reference::flex_attention(
      kQuery, kKey, value, {.score_mod = [](TensorView<double> scores) {
        for (std::int64_t b = 0; b < scores.extent(0); ++b)
          for (std::int64_t h = 0; h < scores.extent(1); ++h)
            for (std::int64_t q = 0; q < scores.extent(2); ++q)
              for (std::int64_t k = q + 1; k < scores.extent(3); ++k)
                scores(b, h, q, k) = -std::numeric_limits<double>::infinity();
      }});
  EXPECT_LE(max_difference(
                out, reference::attention(kQuery, kKey, value, {.mask = causal_top_left()}).out),
            1e-15);
}

TEST(FlexAttention, WeightsMayBeChanged) {
  const auto out =
      reference::flex_attention(kQuery, kKey, kValue, {.prob_mod = [](TensorView<double> weights) {
                                  for (double& weight : weights.elements()) weight *= 3;
                                }});
  auto expected = reference::attention(kQuery, kKey, kValue).out;
  for (double& x : expected.elements()) x *= 3;
  EXPECT_LE(max_difference(out, expected), 1e-14);
}

TEST(FlexAttention, RefusesMisuse) {
  EXPECT_THAT([] { reference::flex_attention(kQuery, kKey, kQuery); },
              Refuses("value num_kv_heads", "4"));
}

}  // namespace
}  // namespace heed
