// Rotary embeddings of variables that are not columns of heads; heads_test.cc tests those.
#include "heed/attention/rotary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "heed/nn/ops.h"
#include "support/gradcheck.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::normal_variable;
using testing_support::Refuses;
using testing_support::same_bits;
using Variable64 = Variable<double>;

struct VariableCaches {
  Variable64 cos;
  Variable64 sin;
};

// Caches for four dimensions, with an attention factor other than 1.
VariableCaches yarn_caches() {
  auto [cos, sin] = rotary_caches<double>(
      12, rotary_frequencies(4, 100, YarnScaling{.factor = 3, .original_max_len = 40}));
  return {std::move(cos), std::move(sin)};
}

const std::vector<Shape>& shapes() {
  static const std::vector<Shape> result{{2, 3, 5, 6}, {2, 5, 18}};
  return result;
}

RotaryOptions options_for(const Shape& shape) {
  RotaryOptions options{.rotary_dim = 4, .offset = 2};
  if (shape.rank() == 3) options.num_heads = 3;
  return options;
}

TEST(RotaryOfVariables, IsThatOfTheOperator) {
  const auto [cos, sin] = yarn_caches();
  for (const Shape& shape : shapes()) {
    const Variable64 x = normal_variable(shape, 1);
    for (const auto pairing : {RotaryPairing::kHalves, RotaryPairing::kNeighbours}) {
      const RotaryOptions options = options_for(shape);
      EXPECT_TRUE(
          same_bits(rotary_embedding(x, cos, sin, pairing, options).value(),
                    heed::rotary_embedding(x.value(), cos.value(), sin.value(), pairing, options)));
    }
  }
}

TEST(RotaryOfVariables, HasGradients) {
  const VariableCaches caches = yarn_caches();
  for (const Shape& shape : shapes()) {
    const Variable64 x = normal_variable(shape, 1);
    for (const auto pairing : {RotaryPairing::kHalves, RotaryPairing::kNeighbours}) {
      const auto forward = [&] {
        return rotary_embedding(x, caches.cos, caches.sin, pairing, options_for(shape));
      };
      EXPECT_LE(gradient_error({x}, forward), kGradientTolerance);
    }
  }
}

TEST(RotaryOfVariables, KeepsItsPositions) {
  const VariableCaches caches = yarn_caches();
  const Variable64 x = normal_variable({1, 2, 3, 4}, 1);
  const auto forward = [&] {
    Tensor<std::int64_t> positions({3}, {7, 0, 11});
    auto turned = rotary_embedding(x, caches.cos, caches.sin, RotaryPairing::kHalves,
                                   {.position_ids = positions});
    for (std::int64_t& position : positions.elements()) position = 1;
    return turned;
  };
  EXPECT_LE(gradient_error({x}, forward), kGradientTolerance);
}

TEST(RotaryOfVariables, RefusesMisuse) {
  const VariableCaches caches = yarn_caches();
  const Variable64 packed = normal_variable({2, 5, 18}, 1);
  EXPECT_THAT([&] { rotary_embedding(packed, caches.cos, caches.sin, RotaryPairing::kHalves); },
              Refuses("x", "[2, 5, 18]"));
  EXPECT_THAT(
      [&] {
        rotary_embedding(packed, normal_variable({12, 2}, 1), caches.sin, RotaryPairing::kHalves,
                         {.num_heads = 3});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("cos or sin requires a gradient")));
}

}  // namespace
}  // namespace heed::nn
