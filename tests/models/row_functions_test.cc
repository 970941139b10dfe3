#include "models/kernels/row_functions.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/tensors.h"

namespace heed::models { namespace {

using testing_support::kNaN;

std::vector<float> wide_numbers() {
  std::vector<float> numbers;
  for (int i = -2400; i <= 2400; ++i) numbers.push_back(static_cast<float>(i) / 200);
  for (const float x : {-1e30F, -100.0F, -1e-30F, 0.0F, 1e-30F, 100.0F, 1e30F}) {
    numbers.push_back(x);
  }
  return numbers;
}

// Returns the largest |f(x) − expected(x)| / max(1, |x|).
template <class F>
double largest_error(void (*f)(float*, std::int64_t), F expected) {
  const std::vector<float> x = wide_numbers();
  std::vector<float> y = x;
  f(y.data(), static_cast<std::int64_t>(y.size()));
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = std::abs(static_cast<double>(y[i]) - expected(static_cast<double>(x[i])));
    largest = std::max(largest, error / std::max(1.0, std::abs(static_cast<double>(x[i]))));
  }
  return largest;
}

TEST(RowFunctions, ActivationsAreWithinSomeRoundings) {
  const RowFunctions& functions = row_functions();
  EXPECT_LT(largest_error(functions.gelu,
                          [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }),
            2e-7);
  EXPECT_LT(largest_error(functions.gelu_tanh,
                          [](double x) {
                            const double root = std::sqrt(2 / std::acos(-1.0));
                            return 0.5 * x * (1 + std::tanh(root * (x + 0.044715 * x * x * x)));
                          }),
            2e-7);
  EXPECT_LT(largest_error(functions.silu, [](double x) { return x / (1 + std::exp(-x)); }), 2e-7);
  EXPECT_EQ(largest_error(functions.relu, [](double x) { return std::max(x, 0.0); }), 0);
}

TEST(RowFunctions, ActivationsOfNaNAreNaN) {
  const RowFunctions& functions = row_functions();
  for (const auto f : {functions.gelu, functions.gelu_tanh, functions.silu, functions.relu}) {
    float x[] = {kNaN, 1};
    f(x, 2);
    EXPECT_TRUE(std::isnan(x[0]));
    EXPECT_FALSE(std::isnan(x[1]));
  }
}

TEST(RowFunctions, NormsFollowTheirEquations) {
  for (const std::int64_t size : {1, 7, 32, 33, 576}) {
    const Tensor<float> x = testing_support::normal<float>({size}, 1);
    const Tensor<float> weight = testing_support::normal<float>({size}, 2);
    const Tensor<float> bias = testing_support::normal<float>({size}, 3);
    double mean = 0;
    double square = 0;
    for (const float element : x.elements()) {
      mean += element / static_cast<double>(size);
      square += double{element} * element / static_cast<double>(size);
    }
    Tensor<float> layer(x.shape());
    Tensor<float> rms(x.shape());
    const NormRow row{weight.data(), bias.data(), size, 1e-5};
    row_functions().layer_norm(row, x.data(), layer.data());
    row_functions().rms_norm({weight.data(), nullptr, size, 1e-5}, x.data(), rms.data());
    for (std::int64_t i = 0; i < size; ++i) {
      const double normed = (x(i) - mean) / std::sqrt(square - mean * mean + 1e-5);
      EXPECT_NEAR(layer(i), normed * weight(i) + bias(i), 2e-6);
      EXPECT_NEAR(rms(i), x(i) / std::sqrt(square + 1e-5) * weight(i), 2e-6);
    }
  }
}

}  // namespace

}  // namespace heed::models
