// The loops of row_functions.h, to be inlined into functions for an instruction set.
#pragma once

#include <cmath>
#include <cstdint>
#include <iterator>

#include "heed/core/dual.h"
#include "models/kernels/row_functions.h"
#include "nn/ops/loop_bodies.h"

namespace heed { inline namespace v0 { namespace models::row_bodies {

// exp(z²) · erfc(z) = t · Q(t), t = 1 / (1 + z/2), for 0 ≤ z ≤ 10, with a relative error of 4.3e-8:
// the minimax polynomial of degree 8, the constant term first.
inline constexpr float kErfcCoefficients[] = {0.282086432F, 0.282375276F,   0.243103951F,
                                              0.202685982F, -0.0266231932F, 0.278062999F,
                                              -0.48719573F, 0.284572691F,   -0.0590684377F};

// x · Φ(x). For negative x, Φ is computed as the tail directly: 1 + erf would lose its digits.
[[gnu::always_inline]] inline float gelu(float x) {
  const float z = std::abs(x) * 0.707106781F;
  const float t = 1.0F / (1.0F + 0.5F * z);
  float q = 0;
  for (int i = std::size(kErfcCoefficients) - 1; i >= 0; --i) q = q * t + kErfcCoefficients[i];
  const float tail = 0.5F * t * q * detail::float_exp(-z * z);
  return detail::select_both(x < 0, x * tail, x - x * tail);
}

[[gnu::always_inline]] inline float gelu_tanh(float x) {
  constexpr float kRoot = 0.797884561F;  // √(2/π)
  return 0.5F * x * (1.0F + heed::tanh(kRoot * (x + 0.044715F * x * x * x)));
}

[[gnu::always_inline]] inline void scale_and_shift(const NormRow& norm, float mean, float factor,
                                                   const float* x, float* __restrict y) {
  if (norm.bias == nullptr) {
    for (std::int64_t i = 0; i < norm.size; ++i) y[i] = (x[i] - mean) * factor * norm.weight[i];
  } else {
    for (std::int64_t i = 0; i < norm.size; ++i) {
      y[i] = (x[i] - mean) * factor * norm.weight[i] + norm.bias[i];
    }
  }
}

[[gnu::always_inline]] inline void layer_norm(const NormRow& norm, const float* x, float* y) {
  const auto size = static_cast<double>(norm.size);
  const double mean =
      nn::loop_bodies::sum(
          x, norm.size, [](double element) __attribute__((always_inline)) { return element; }) /
      size;
  const double variance = nn::loop_bodies::sum(
                              x, norm.size,
                              [mean](double element) __attribute__((always_inline)) {
                                return (element - mean) * (element - mean);
                              }) /
                          size;
  scale_and_shift(norm, static_cast<float>(mean),
                  static_cast<float>(1 / std::sqrt(variance + norm.epsilon)), x, y);
}

[[gnu::always_inline]] inline void rms_norm(const NormRow& norm, const float* x, float* y) {
  const double square =
      nn::loop_bodies::sum_of_squares(x, norm.size) / static_cast<double>(norm.size);
  scale_and_shift(norm, 0, static_cast<float>(1 / std::sqrt(square + norm.epsilon)), x, y);
}

}}}  // namespace heed::v0::models::row_bodies
