/// Dual numbers: a value and its derivative. Running a score modification on them differentiates
/// it.
///
/// A function written once for `auto` works on float, double and Dual. Use heed's exp, log, tanh,
/// sqrt, abs, min, max and select in it: they exist for all three. For float, exp, tanh and select
/// are written so that compilers vectorise a loop over them.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "heed/core/config.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 {

namespace detail {

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

}  // namespace detail

template <class Number>
concept Arithmetic = std::is_arithmetic_v<Number>;

/// value + derivative·ε with ε² = 0. Arithmetic follows the rules of differentiation; comparisons
/// compare the values.
template <std::floating_point T>
struct Dual {
  T value{};
  T derivative{};

  constexpr Dual() = default;
  constexpr Dual(T v, T d) : value(v), derivative(d) {}
  /// A constant: its derivative is 0. Implicit, so that formulas may contain plain numbers.
  template <Arithmetic Number>
  constexpr Dual(Number constant) : value(static_cast<T>(constant)) {}  // NOLINT

  friend constexpr Dual operator+(Dual a, Dual b) {
    return {a.value + b.value, a.derivative + b.derivative};
  }
  friend constexpr Dual operator-(Dual a, Dual b) {
    return {a.value - b.value, a.derivative - b.derivative};
  }
  friend constexpr Dual operator*(Dual a, Dual b) {
    return {a.value * b.value, a.derivative * b.value + a.value * b.derivative};
  }
  friend constexpr Dual operator/(Dual a, Dual b) {
    const T quotient = a.value / b.value;
    return {quotient, (a.derivative - quotient * b.derivative) / b.value};
  }
  friend constexpr Dual operator-(Dual a) { return {-a.value, -a.derivative}; }
  friend constexpr Dual operator+(Dual a) { return a; }
  constexpr Dual& operator+=(Dual other) { return *this = *this + other; }
  constexpr Dual& operator-=(Dual other) { return *this = *this - other; }
  constexpr Dual& operator*=(Dual other) { return *this = *this * other; }
  constexpr Dual& operator/=(Dual other) { return *this = *this / other; }

  friend constexpr bool operator==(Dual a, Dual b) { return a.value == b.value; }
  friend constexpr auto operator<=>(Dual a, Dual b) { return a.value <=> b.value; }
};

/// eˣ, for float within 3 units in the last place, for double that of elementary.h.
template <std::floating_point T>
[[gnu::always_inline]] inline T exp(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::float_exp(x);
  } else {
    return elementary::exp(x);
  }
}
/// log x, that of elementary.h.
template <std::floating_point T>
T log(T x) {
  return elementary::log(x);
}
/// tanh x, for float within 3 units in the last place, for double that of elementary.h.
template <std::floating_point T>
[[gnu::always_inline]] inline T tanh(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::float_tanh(x);
  } else {
    return elementary::tanh(x);
  }
}
template <std::floating_point T>
T sqrt(T x) {
  return std::sqrt(x);
}
template <std::floating_point T>
T abs(T x) {
  return std::abs(x);
}

template <std::floating_point T>
Dual<T> exp(Dual<T> x) {
  const T value = heed::exp(x.value);
  return {value, value * x.derivative};
}
template <std::floating_point T>
Dual<T> log(Dual<T> x) {
  return {elementary::log(x.value), x.derivative / x.value};
}
template <std::floating_point T>
Dual<T> tanh(Dual<T> x) {
  const T value = heed::tanh(x.value);
  return {value, (1 - value * value) * x.derivative};
}
template <std::floating_point T>
Dual<T> sqrt(Dual<T> x) {
  const T value = std::sqrt(x.value);
  return {value, x.derivative / (2 * value)};
}
template <std::floating_point T>
Dual<T> abs(Dual<T> x) {
  return x.value < 0 ? -x : x;
}

namespace detail {

template <class T>
constexpr T choose(bool condition, T a, T b) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    return select_both(condition, a, b);
  } else {
    return condition ? a : b;
  }
}
template <class T>
constexpr Dual<T> choose(bool condition, Dual<T> a, Dual<T> b) {
  return {choose(condition, a.value, b.value), choose(condition, a.derivative, b.derivative)};
}

}  // namespace detail

/// `condition ? a : b`. Both sides are computed, and a number may be mixed with a dual number. In a
/// score modification it is faster than a branch: GCC vectorises no branch that contains
/// arithmetic.
template <class A, class B>
constexpr auto select(bool condition, A a, B b) {
  using Result = decltype(a + b);
  return detail::choose(condition, Result(a), Result(b));
}

/// The smaller, or the larger, of two numbers; the first if they are equal.
template <class A, class B>
constexpr auto min(A a, B b) {
  using Result = decltype(a + b);
  return b < a ? Result(b) : Result(a);
}
template <class A, class B>
constexpr auto max(A a, B b) {
  using Result = decltype(a + b);
  return a < b ? Result(b) : Result(a);
}

}}  // namespace heed::v0

// Score modifications must call heed's functions of dual numbers, not the standard library's. If
// one calls std::tanh, the compiler prints one line with the remedy instead of all overloads. The
// declarations must be in std to be found by such a call; none of them can be called.
// NOLINTBEGIN(cert-dcl58-cpp)
namespace std {

template <floating_point T>
heed::Dual<T> exp(heed::Dual<T> x) {
  static_assert(heed::detail::kNever<T>, "of scores write heed::exp instead of std::exp");
  return x;
}
template <floating_point T>
heed::Dual<T> log(heed::Dual<T> x) {
  static_assert(heed::detail::kNever<T>, "of scores write heed::log instead of std::log");
  return x;
}
template <floating_point T>
heed::Dual<T> tanh(heed::Dual<T> x) {
  static_assert(heed::detail::kNever<T>, "of scores write heed::tanh instead of std::tanh");
  return x;
}
template <floating_point T>
heed::Dual<T> sqrt(heed::Dual<T> x) {
  static_assert(heed::detail::kNever<T>, "of scores write heed::sqrt instead of std::sqrt");
  return x;
}
template <floating_point T>
heed::Dual<T> abs(heed::Dual<T> x) {
  static_assert(heed::detail::kNever<T>, "of scores write heed::abs instead of std::abs");
  return x;
}
template <floating_point T>
heed::Dual<T> fabs(heed::Dual<T> x) {
  static_assert(heed::detail::kNever<T>, "of scores write heed::abs instead of std::fabs");
  return x;
}
template <floating_point T, class Power>
heed::Dual<T> pow(heed::Dual<T> x, Power /*power*/) {
  static_assert(heed::detail::kNever<T>,
                "of scores write x * x or heed::exp(power * heed::log(x)) instead of std::pow");
  return x;
}

}  // namespace std
// NOLINTEND(cert-dcl58-cpp)
