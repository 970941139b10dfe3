#include "heed/dual.h"

#include <gtest/gtest.h>

#include <cmath>

namespace heed {
namespace {

// The derivative by running f on a dual number, against the central difference.
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
