#include "heed/attention/rotary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <vector>

#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::expect_refused;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::same_bits;

constexpr auto kHalves = RotaryPairing::kHalves;
constexpr auto kNeighbours = RotaryPairing::kNeighbours;

// Returns the rotation as a product of complex numbers.
Tensor<double> turned(DoubleView x, const std::function<std::int64_t(int, int)>& position,
                      std::int64_t rotary_dim, RotaryPairing pairing) {
  Tensor<double> result = to_tensor(x);
  const std::int64_t half = rotary_dim / 2;
  for (int b = 0; b < x.extent(0); ++b)
    for (int h = 0; h < x.extent(1); ++h)
      for (int t = 0; t < x.extent(2); ++t)
        for (std::int64_t i = 0; i < half; ++i) {
          const std::int64_t first = pairing == kNeighbours ? 2 * i : i;
          const std::int64_t second = pairing == kNeighbours ? 2 * i + 1 : i + half;
          const double angle =
              static_cast<double>(position(b, t)) *
              std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(rotary_dim));
          const auto z =
              std::complex(x(b, h, t, first), x(b, h, t, second)) * std::polar(1.0, angle);
          result(b, h, t, first) = z.real();
          result(b, h, t, second) = z.imag();
        }
  return result;
}

TEST(Rotary, TurnsPairsByTheirPositions) {
  const auto x = normal<double>({2, 3, 5, 8}, 1);
  const Tensor<std::int64_t> ids({2, 5}, {0, 1, 2, 3, 4, 7, 7, 0, 9, 3});
  for (const RotaryPairing pairing : {kHalves, kNeighbours}) {
    for (const std::int64_t rotary_dim : {0, 2, 6, 8}) {
      const auto caches = rotary_caches<double>(10, rotary_dim);
      RotaryOptions options{.rotary_dim = rotary_dim};
      options.offset = 3;
      const auto from_offset = rotary_embedding(x, caches.cos, caches.sin, pairing, options);
      EXPECT_LE(max_difference(from_offset,
                               turned(
                                   x, [](int, int t) { return t + 3; }, rotary_dim, pairing)),
                1e-14);
      options.position_ids = ids;
      const auto by_ids = rotary_embedding(x, caches.cos, caches.sin, pairing, options);
      EXPECT_LE(max_difference(
                    by_ids, turned(
                                x, [&](int b, int t) { return ids(b, t); }, rotary_dim, pairing)),
                1e-14);
    }
  }
}

TEST(Rotary, TakesARowForEachToken) {
  const auto x = normal<float>({2, 3, 4, 6}, 1);
  const auto cos = normal<float>({2, 4, 3}, 2);
  const auto sin = normal<float>({2, 4, 3}, 3);
  const auto out = rotary_embedding(x, cos, sin, kHalves);
  EXPECT_FLOAT_EQ(out(1, 2, 3, 1), x(1, 2, 3, 1) * cos(1, 3, 1) - x(1, 2, 3, 4) * sin(1, 3, 1));
  EXPECT_FLOAT_EQ(out(1, 2, 3, 4), x(1, 2, 3, 1) * sin(1, 3, 1) + x(1, 2, 3, 4) * cos(1, 3, 1));
}

TEST(Rotary, PackedHeadsAndStridesAreTheSameNumbers) {
  const auto packed = normal<float>({2, 5, 24}, 1);  // [batch, length, 3 heads of 8]
  const auto caches = rotary_caches(5, 8);
  const auto out = rotary_embedding(packed, caches.cos, caches.sin, kHalves, {.num_heads = 3});
  ASSERT_EQ(out.shape(), packed.shape());
  const FloatView heads = packed.view().reshape({2, 5, 3, 8}).permute({0, 2, 1, 3});
  const auto by_view = rotary_embedding(heads, caches.cos, caches.sin, kHalves);
  ASSERT_EQ(by_view.shape(), (Shape{2, 3, 5, 8}));
  EXPECT_TRUE(same_bits(to_tensor(by_view.view().permute({0, 2, 1, 3})).reshaped({2, 5, 24}), out));
  // Every second column of wider caches.
  const auto wide = normal<float>({5, 8}, 2);
  const FloatView every_second(wide.data(), {5, 4}, {8, 2});
  EXPECT_TRUE(same_bits(
      rotary_embedding(heads, every_second, every_second, kHalves),
      rotary_embedding(heads, to_tensor(every_second), to_tensor(every_second), kHalves)));
}

TEST(Rotary, RoundsHalfPrecisionOnce) {
  const auto x = normal<float>({1, 1, 3, 4}, 1);
  Tensor<Float16> half(x.shape());
  Tensor<float> wide(x.shape());
  for (std::size_t i = 0; i < x.elements().size(); ++i) {
    half.elements()[i] = Float16(x.elements()[i]);
    wide.elements()[i] = half.elements()[i];
  }
  const auto caches = rotary_caches(3, 4);
  const auto found = rotary_embedding(half, caches.cos, caches.sin, kHalves);
  const auto expected = rotary_embedding(wide, caches.cos, caches.sin, kHalves);
  for (std::size_t i = 0; i < x.elements().size(); ++i) {
    EXPECT_EQ(found.elements()[i].bits(), Float16(expected.elements()[i]).bits());
  }
}

// A rotation is orthogonal: its backward pass is its transpose and thus its inverse.
TEST(Rotary, GoesBack) {
  const auto x = normal<double>({2, 2, 4, 7}, 1);
  const auto weights = normal<double>(x.shape(), 2);
  const auto caches = rotary_caches<double>(4, 6);
  for (const RotaryPairing pairing : {kHalves, kNeighbours}) {
    const RotaryOptions options{.rotary_dim = 6};
    const auto loss = [&](DoubleView at) {
      const auto out = rotary_embedding(at, caches.cos, caches.sin, pairing, options);
      double sum = 0;
      for (std::size_t i = 0; i < out.elements().size(); ++i) {
        sum += out.elements()[i] * weights.elements()[i];
      }
      return sum;
    };
    const auto grad = rotary_embedding_backward(weights, caches.cos, caches.sin, pairing, options);
    for (std::size_t i = 0; i < x.elements().size(); ++i) {
      auto above = x;
      auto below = x;
      above.elements()[i] += 1e-5;
      below.elements()[i] -= 1e-5;
      EXPECT_NEAR(grad.elements()[i], (loss(above) - loss(below)) / 2e-5, 1e-8);
    }
    EXPECT_LE(max_difference(rotary_embedding_backward(
                                 rotary_embedding(x, caches.cos, caches.sin, pairing, options),
                                 caches.cos, caches.sin, pairing, options),
                             x),
              1e-14);
  }
}

// q · k after the rotation depends on the distance only.
TEST(Rotary, MakesProductsRelative) {
  const auto q = normal<double>({1, 1, 1, 16}, 1);
  const auto k = normal<double>({1, 1, 1, 16}, 2);
  const auto caches = rotary_caches<double>(100, 16);
  const auto product = [&](std::int64_t q_position, std::int64_t k_position) {
    const auto a = rotary_embedding(q, caches.cos, caches.sin, kHalves, {.offset = q_position});
    const auto b = rotary_embedding(k, caches.cos, caches.sin, kHalves, {.offset = k_position});
    double sum = 0;
    for (std::size_t i = 0; i < 16; ++i) sum += a.elements()[i] * b.elements()[i];
    return sum;
  };
  EXPECT_NEAR(product(20, 13), product(90, 83), 1e-12);
}

TEST(Rotary, TakesNothing) {
  const auto caches = rotary_caches(4, 8);
  EXPECT_EQ(rotary_embedding(Tensor<float>({2, 0, 4, 8}), caches.cos, caches.sin, kHalves).shape(),
            (Shape{2, 0, 4, 8}));
  EXPECT_EQ(rotary_embedding(Tensor<float>({2, 3, 0, 8}), caches.cos, caches.sin, kHalves).shape(),
            (Shape{2, 3, 0, 8}));
}

TEST(Rotary, RefusesMisuse) {
  const Tensor<float> x({2, 3, 4, 8});
  const auto caches = rotary_caches(4, 8);
  const auto call = [&](FloatView in, const RotaryOptions& options) {
    return
        [&caches, in, options] { rotary_embedding(in, caches.cos, caches.sin, kHalves, options); };
  };
  expect_refused(call(x.view().select(0, 0), {}), {"x", "[3, 4, 8]"});
  expect_refused(call(x, {.num_heads = 3}), "num_heads is given");
  expect_refused(call(x.view().select(0, 0), {.num_heads = 3}),
                 "width 8 is not a multiple of num_heads, 3");
  expect_refused(call(x.view().select(0, 0).select(0, 0), {}), {"x", "[4, 8]"});
  expect_refused(call(x, {.rotary_dim = 5}), {"rotary_dim", "5"});
  expect_refused(call(x, {.rotary_dim = 10}), {"rotary_dim", "10"});
  expect_refused(call(x, {.rotary_dim = 4}), {"cos", "[4, 4]"});
  expect_refused(call(x, {.offset = 1}), "4 tokens from offset 1, but cos has 4 positions");
  expect_refused(call(x, {.offset = -1}), "offset -1");
  const Tensor<std::int64_t> ids({2, 4}, {0, 1, 2, 3, 0, 1, 2, 4});
  expect_refused(call(x, {.position_ids = ids}), {"position_ids", "4"});
  const Tensor<std::int64_t> three({2, 3});
  expect_refused(call(x, {.position_ids = three}), {"position_ids", "[2, 3]"});
  const Tensor<float> each({2, 4, 4});
  const Tensor<std::int64_t> zeros({2, 4});
  expect_refused([&] { rotary_embedding(x, each, each, kHalves, {.position_ids = zeros}); },
                 {"cos", "[2, 4, 4]"});
  expect_refused([&] { rotary_embedding(x, each, caches.sin, kHalves); }, {"sin", "[4, 4]"});
  const FloatView transposed = x.view().permute({0, 1, 3, 2});
  expect_refused(call(transposed, {}), "stride 8 in its innermost dimension");
  expect_refused([] { rotary_caches(-1, 4); }, {"max_len", "-1"});
  expect_refused([] { rotary_caches(3, 5); }, {"rotary_dim", "5"});
  expect_refused([] { rotary_caches(3, 4, 0); }, "rotary_frequencies: base (rope_theta) is 0");
}

}  // namespace
}  // namespace heed
