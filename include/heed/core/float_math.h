// exp and tanh of a float, written so that compilers vectorise loops over them: no branches, no
// calls and no tables.
#pragma once

#include <cstdint>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace detail {

// 2ʳ for −½ ≤ r ≤ ½ within 2 ulp: the minimax polynomial of degree 5 whose constant term is 1, the
// highest coefficient first.
inline constexpr float kExp2Coefficients[] = {0.00132647274F, 0.00967151288F, 0.0555073375F,
                                              0.240222421F,   0.693146978F,   1.0F};

// (1 − exp(−2r)) / r for |r| ≤ ¼ ln 2 within 1 ulp, the highest coefficient first.
inline constexpr float kTanhCoefficients[] = {-0.0888885666F, 0.267810279F, -0.666674188F,
                                              1.3333205F,     -1.99999992F, 2.0F};
inline constexpr float kHalfLn2 = 0.34657359F;
// From this magnitude on, tanh rounds to ±1.
inline constexpr float kTanhSaturation = 9.5F;
inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kLog2ERest = 1.92596299e-8F;  // log2 e − kLog2E

// condition ? a : b. Both are computed: around a branch, GCC does not vectorise a loop, because the
// side that is not taken might raise a floating-point exception.
[[gnu::always_inline]] constexpr float select_both(bool condition, float a, float b) {
  const std::uint32_t mask = condition ? ~std::uint32_t{0} : 0;
  const auto bits = __builtin_bit_cast(std::uint32_t, b);
  return __builtin_bit_cast(float, bits ^ ((__builtin_bit_cast(std::uint32_t, a) ^ bits) & mask));
}
[[gnu::always_inline]] constexpr double select_both(bool condition, double a, double b) {
  const std::uint64_t mask = condition ? ~std::uint64_t{0} : 0;
  const auto bits = __builtin_bit_cast(std::uint64_t, b);
  return __builtin_bit_cast(double, bits ^ ((__builtin_bit_cast(std::uint64_t, a) ^ bits) & mask));
}

[[gnu::always_inline]] constexpr float exp2_polynomial(float r) {
  const auto& c = kExp2Coefficients;
  return ((((c[0] * r + c[1]) * r + c[2]) * r + c[3]) * r + c[4]) * r + c[5];
}

// The nearest whole number, for |x| < 2²². Computed from the bits, so that no compiler flag
// reorders the operations; undefined for NaN.
[[gnu::always_inline]] constexpr std::int32_t nearest(float x) {
  constexpr float kShift = 0x1.8p23F;
  return __builtin_bit_cast(std::int32_t, x + kShift) - __builtin_bit_cast(std::int32_t, kShift);
}

// 2ⁿ for −127 < n < 128.
[[gnu::always_inline]] constexpr float power_of_2(std::int32_t n) {
  return __builtin_bit_cast(float, (n + 127) * (1 << 23));
}

// The magnitude of x, limited to `bound`; NaN becomes `bound`. Computed on the bits: for a
// comparison of floats with a constant, GCC would move the rest of the function into a branch.
[[gnu::always_inline]] constexpr float bounded_magnitude(float x, float bound) {
  const auto magnitude = __builtin_bit_cast(std::int32_t, x) & 0x7fffffff;
  const auto largest = __builtin_bit_cast(std::int32_t, bound);
  return __builtin_bit_cast(float, magnitude < largest ? magnitude : largest);
}

[[gnu::always_inline]] constexpr float with_sign_of(float x, float sign) {
  constexpr std::uint32_t kSign = 0x80000000U;
  const std::uint32_t magnitude = __builtin_bit_cast(std::uint32_t, x) & ~kSign;
  return __builtin_bit_cast(float, magnitude | (__builtin_bit_cast(std::uint32_t, sign) & kSign));
}

// eˣ within 3 ulp, subnormal results included.
[[gnu::always_inline]] constexpr float float_exp(float x) {
  // At this magnitude the result is 0 or infinite.
  const float bounded = with_sign_of(bounded_magnitude(x, 104.0F), x);
  const std::int32_t n = nearest(bounded * kLog2E);
  const auto whole = static_cast<float>(n);
  // n · ln 2 in two parts; the product with the first is exact.
  const float remainder = bounded - whole * 0.693359375F + whole * 2.12194440e-4F;
  // In two steps, because a float cannot hold every 2ⁿ that occurs.
  const std::int32_t half = n >> 1;
  const float power = exp2_polynomial(remainder * kLog2E) * power_of_2(half) * power_of_2(n - half);
  return select_both(x == x, power, x);
}

// tanh x within 3 ulp: ±g / (2 − g) with g = 1 − exp(−2 |x|) and |x| = r − n · ½ ln 2.
[[gnu::always_inline]] constexpr float float_tanh(float x) {
  const float magnitude = bounded_magnitude(x, kTanhSaturation);
  const std::int32_t n = nearest(magnitude * (-2 * kLog2E));
  const float r = static_cast<float>(n) * kHalfLn2 + magnitude;
  const auto& c = kTanhCoefficients;
  const float polynomial = ((((c[0] * r + c[1]) * r + c[2]) * r + c[3]) * r + c[4]) * r + c[5];
  const float power = power_of_2(n);
  const float g = polynomial * r * power + (1 - power);
  return select_both(x == x, with_sign_of(g / (2 - g), x), x);
}

}}}  // namespace heed::v0::detail
