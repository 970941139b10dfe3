/// Dual numbers: a value and its derivative. Running a score modification on them differentiates
/// it.
///
/// A function written once for `auto` works on float, double and Dual. Use heed's exp, log, tanh,
/// sqrt, abs, min, max and select in it: they exist for all three. For float, exp, tanh and select
/// are written so that compilers vectorise a loop over them.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "heed/core/config.h"
#include "heed/core/float_math.h"

namespace heed { inline namespace v0 {

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

/// eˣ, for float within 3 units in the last place, for other types the standard library's.
template <std::floating_point T>
[[gnu::always_inline]] inline T exp(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::float_exp(x);
  } else {
    return std::exp(x);
  }
}
template <std::floating_point T>
T log(T x) {
  return std::log(x);
}
/// tanh x, for float within 3 units in the last place, for other types the standard library's.
template <std::floating_point T>
[[gnu::always_inline]] inline T tanh(T x) {
  if constexpr (std::is_same_v<T, float>) {
    return detail::float_tanh(x);
  } else {
    return std::tanh(x);
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
  return {std::log(x.value), x.derivative / x.value};
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
