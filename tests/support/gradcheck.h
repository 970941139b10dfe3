// Compares gradients with central differences, in double.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "heed/nn/ops.h"
#include "support/tensors.h"

namespace heed::testing_support {

using Variable64 = nn::Variable<double>;

inline Variable64 normal_variable(const Shape& shape, std::uint32_t seed) {
  return Variable64(normal<double>(shape, seed), true);
}

// Returns Σ weights ∘ y, a loss with a different gradient for each element of y.
inline Variable64 weighted_sum(const Variable64& y) {
  return nn::sum(y * Variable64(normal<double>(y.shape(), 4711)));
}

// Returns the largest difference between the gradient of backward() by an element of `inputs` and
// (f(x + h) − f(x − h)) / 2h, relative to the larger of 1 and the gradient.
inline double gradient_error(const std::vector<Variable64>& inputs,
                             const std::function<Variable64()>& f) {
  for (const auto& input : inputs) input.zero_grad();
  weighted_sum(f()).backward();
  const nn::NoGrad no_grad;
  const double step = 1e-5;
  double largest = 0;
  for (const auto& input : inputs) {
    const Tensor<double> grad =
        input.has_grad() ? to_tensor(input.grad()) : Tensor<double>(input.shape());
    for (std::int64_t i = 0; i < input.num_elements(); ++i) {
      double& x = input.writable_value().data()[i];
      const double before = x;
      x = before + step;
      const double above = weighted_sum(f()).item();
      x = before - step;
      const double below = weighted_sum(f()).item();
      x = before;
      const double expected = (above - below) / (2 * step);
      const double error = std::abs(grad.data()[i] - expected) / std::max(1.0, std::abs(expected));
      largest = std::isnan(error) ? error : std::max(largest, error);
    }
  }
  return largest;
}

// The error of central differences with this step: rounding 1e-16 / 1e-5, truncation (1e-5)².
inline constexpr double kGradientTolerance = 1e-8;

}  // namespace heed::testing_support
