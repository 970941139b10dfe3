// Inputs for tests, and distances between results.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "heed/core/tensor.h"

namespace heed::testing_support {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Returns standard normal numbers, which depend on the seed only.
template <class Real>
Tensor<Real> normal(const Shape& shape, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> distribution;
  Tensor<Real> tensor(shape);
  for (Real& element : tensor.elements()) element = static_cast<Real>(distribution(engine));
  return tensor;
}

// Returns a copy of the elements in row-major order, for matchers.
template <class T>
std::vector<T> elements_of(const Tensor<T>& tensor) {
  return {tensor.elements().begin(), tensor.elements().end()};
}

// Returns the largest |a − b|; infinity when the shapes differ or exactly one of two elements is
// finite.
template <class Real>
double max_difference(TensorView<const Real> a, TensorView<const Real> b) {
  if (a.shape() != b.shape()) return std::numeric_limits<double>::infinity();
  const Tensor<Real> left = to_tensor(a);
  const Tensor<Real> right = to_tensor(b);
  double largest = 0;
  for (std::size_t i = 0; i < left.elements().size(); ++i) {
    const double x = left.elements()[i];
    const double y = right.elements()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::abs(x - y);
    largest = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                     : std::max(largest, difference);
  }
  return largest;
}

template <class Real>
double max_difference(const Tensor<Real>& a, const Tensor<Real>& b) {
  return max_difference<Real>(a.view(), b.view());
}

// True if every bit is equal, including NaN.
template <class T>
bool same_bits(const Tensor<T>& a, const Tensor<T>& b) {
  return a.shape() == b.shape() &&
         std::equal(reinterpret_cast<const unsigned char*>(a.data()),
                    reinterpret_cast<const unsigned char*>(a.data() + a.num_elements()),
                    reinterpret_cast<const unsigned char*>(b.data()));
}

// Returns the elements in another type, rounded to nearest.
template <class To, class From>
Tensor<To> converted(const Tensor<From>& tensor) {
  auto result = Tensor<To>::uninitialized(tensor.shape());
  std::transform(tensor.elements().begin(), tensor.elements().end(), result.elements().begin(),
                 [](From element) { return static_cast<To>(static_cast<float>(element)); });
  return result;
}

}  // namespace heed::testing_support
