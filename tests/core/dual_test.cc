#include "heed/core/dual.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace heed { namespace {

// Compares the derivative of f on a dual number with the central difference.
template <class F>
void expect_derivative(F f, double x) {
  constexpr double kStep = 1e-6;
  const double expected = (f(x + kStep) - f(x - kStep)) / (2 * kStep);
  const Dual<double> result = f(Dual<double>(x, 1));
  EXPECT_DOUBLE_EQ(result.value, f(x));
  EXPECT_NEAR(result.derivative, expected, 1e-7 * (1 + std::abs(expected)));
}

TEST(Dual, FollowsTheRulesOfDifferentiation) {
  for (const double at : {0.3, 1.7, 4.0}) {
    expect_derivative([](auto x) { return 2 * x + x * x - 1; }, at);
    expect_derivative([](auto x) { return (x + 3) / (1 + x * x); }, at);
    expect_derivative([](auto x) { return heed::exp(-x) * heed::tanh(x); }, at);
    expect_derivative([](auto x) { return heed::log(x) + heed::sqrt(x); }, at);
    expect_derivative([](auto x) { return heed::abs(x - 1); }, at);
    expect_derivative([](auto x) { return heed::min(x, 2.0) * heed::max(1.0, x); }, at);
    expect_derivative([](auto x) { return heed::select(x < 1, x * x, 3 * x); }, at);
  }
}

// Returns the largest error of f on a grid over all finite floats of one sign, in units in the last
// place. Compilers vectorise the loop over the numbers.
template <class F, class Exact>
double worst_error(std::uint32_t sign, F f, Exact exact) {
  constexpr std::uint32_t kInfinityBits = 0x7f800000;
  constexpr std::uint32_t kStep = 4799;
  std::vector<float> inputs;
  for (std::uint32_t bits = 0; bits < kInfinityBits; bits += kStep) {
    inputs.push_back(std::bit_cast<float>(bits | sign));
  }
  std::vector<float> found(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) found[i] = f(inputs[i]);
  double worst = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const double expected = exact(static_cast<double>(inputs[i]));
    const auto rounded = static_cast<float>(expected);
    if (std::isinf(rounded)) {
      EXPECT_EQ(found[i], rounded) << inputs[i];
      continue;
    }
    const double below = std::nextafter(rounded, 0.0F);
    const double unit = std::max(std::abs(rounded - below), 0x1p-149);
    worst = std::max(worst, std::abs(found[i] - expected) / unit);
    EXPECT_FALSE(std::isnan(found[i])) << inputs[i];
  }
  return worst;
}

TEST(FloatTanh, IsWithinThreeUlp) {
  const auto tanh = [](auto x) { return heed::tanh(x); };
  const auto exact = [](double x) { return std::tanh(x); };
  EXPECT_LE(worst_error(0, tanh, exact), 3);
  EXPECT_LE(worst_error(0x80000000, tanh, exact), 3);
}

TEST(FloatTanh, IsOddAndNeverAboveOne) {
  for (float x = 0x1p-120F; x < 100; x *= 1.0003F) {
    const float y = heed::tanh(x);
    ASSERT_EQ(heed::tanh(-x), -y) << x;
    ASSERT_LE(y, 1) << x;
  }
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(heed::tanh(kInfinity), 1);
  EXPECT_EQ(heed::tanh(-kInfinity), -1);
  EXPECT_TRUE(std::isnan(heed::tanh(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::signbit(heed::tanh(-0.0F)) && !std::signbit(heed::tanh(0.0F)));
}

TEST(FloatExp, IsWithinThreeUlp) {
  const auto exp = [](auto x) { return heed::exp(x); };
  const auto exact = [](double x) { return std::exp(x); };
  EXPECT_LE(worst_error(0, exp, exact), 3);
  EXPECT_LE(worst_error(0x80000000, exp, exact), 3);
}

TEST(FloatExp, AtTheEdges) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(heed::exp(0.0F), 1);
  EXPECT_EQ(heed::exp(kInfinity), kInfinity);
  EXPECT_EQ(heed::exp(-kInfinity), 0);
  EXPECT_EQ(heed::exp(-1000.0F), 0);
  EXPECT_GT(heed::exp(-103.0F), 0);
  EXPECT_TRUE(std::isnan(heed::exp(std::numeric_limits<float>::quiet_NaN())));
  EXPECT_TRUE(std::isnan(heed::exp(-std::numeric_limits<float>::quiet_NaN())));
}

TEST(Select, TakesOneSideWhateverTheOtherHolds) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(heed::select(true, 2.5F, nan), 2.5F);
  EXPECT_EQ(heed::select(false, nan, -0.5F), -0.5F);
  EXPECT_TRUE(std::isnan(heed::select(false, 1.0, static_cast<double>(nan))));
  EXPECT_EQ(heed::select(true, 3, 4), 3);
  const Dual<float> both = heed::select(false, 1.0F, Dual<float>(2, 5));
  EXPECT_EQ(both.value, 2);
  EXPECT_EQ(both.derivative, 5);
  static_assert(heed::select(false, 1.0F, 2.0) == 2.0);
}

TEST(Dual, ComparesByValue) {
  EXPECT_TRUE(Dual<float>(1, 9) < Dual<float>(2, 0));
  EXPECT_TRUE(Dual<float>(1, 9) == 1.0F);
  Dual<float> sum = 1.0F;
  sum += Dual<float>(2, 3);
  sum *= 2;
  EXPECT_EQ(sum.value, 6);
  EXPECT_EQ(sum.derivative, 6);
}

}  // namespace
}  // namespace heed
