// exp, log, pow and tanh; elementary_angles.cc has sin and cos. The methods are those of tables
// with short polynomials: Tang, "Table-driven implementation of the exponential function in IEEE
// floating-point arithmetic", 1989, and the same for the logarithm, 1990. What a sum or a product
// of two numbers rounds away is kept as a second number (Dekker, 1971), until the last addition.
#include "heed/core/elementary.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/elementary_tables.h"

#if defined(__FAST_MATH__)
#error "heed needs the arithmetic of IEEE 754: compile it without -ffast-math"
#endif

namespace heed { inline namespace v0 { namespace elementary {

namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kMantissaBits = 52;

std::uint64_t bits_of(double x) { return std::bit_cast<std::uint64_t>(x); }
double of_bits(std::uint64_t bits) { return std::bit_cast<double>(bits); }

// The sum or product of high and low, where low is below a unit in the last place of high.
struct Pair {
  double high, low;
};

// a + b exactly, if |a| >= |b| or a is 0.
Pair ordered_sum(double a, double b) {
  const double sum = a + b;
  return {sum, (a - sum) + b};
}
Pair exact_sum(double a, double b) {
  const double sum = a + b;
  const double part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// The first 26 bits of x.
double upper(double x) { return of_bits(bits_of(x) & ~std::uint64_t{0} << 27); }

// 2ⁿ for -1022 <= n <= 1023.
double power_of_2(std::int64_t n) {
  return of_bits(static_cast<std::uint64_t>(n + 1023) << kMantissaBits);
}

// power · (1 + rest) · 2^exponent
struct Power {
  double power;  // from 1 to 2
  double rest;   // |rest| < 0.003
  std::int64_t exponent;
};

// 2^(k / 128) · eʳ, for |r| <= ln 2 / 256 and an error of r.
Power power_of(std::int64_t k, double r) {
  const PowerOf2& step = kPowers[k & 127];
  const double square = r * r;
  const double rest = step.tail + r + square * (0.5 + r * (1.0 / 6)) +
                      square * square * (1.0 / 24 + r * (1.0 / 120));
  return {step.power, rest, k >> 7};
}

// The nearest whole number, for |x| < 2⁵¹.
double nearest_whole(double x) {
  constexpr double kShift = 0x1.8p52;
  return (x + kShift) - kShift;
}

// exp(high + low) for |high| < 800 and |low| < 2⁻⁴⁰.
Power exp_of(double high, double low) {
  const double k = nearest_whole(high * kStepsPerLn2);
  const double r = ((high - k * kStepHigh) - k * kStepLow) + low;
  return power_of(static_cast<std::int64_t>(k), r);
}

// A result below 2⁻¹⁰²², rounded once: to the multiple of 2⁻¹⁰⁷⁴ that is nearest.
double small_result(Power value) {
  const double scale = power_of_2(value.exponent + 1022 < -70 ? -70 : value.exponent + 1022);
  const double power = value.power * scale;
  const Pair sum = ordered_sum(power, power * value.rest);
  if (sum.high >= 1) return (sum.high + sum.low) * 0x1p-1022;
  // 1 + x has the last place of 2⁻⁵², as a subnormal number times 2¹⁰²².
  const Pair raised = ordered_sum(1, sum.high);
  return ((raised.high + (raised.low + sum.low)) - 1) * 0x1p-1022;
}

double value_of(Power value) {
  if (value.exponent < -1021) return small_result(value);
  // 2¹⁰²⁴ is no number, but half of it twice is the right product.
  const double scale = power_of_2(value.exponent > 1023 ? 1023 : value.exponent);
  const double result = (value.power + value.power * value.rest) * scale;
  return value.exponent > 1023 ? result * 2 : result;
}

// x = (1 + r) / centre.inverse · 2^exponent with |r| <= 2⁻⁷, and r is exact in two parts.
struct Reduced {
  std::int64_t exponent;
  const Centre& centre;
  Pair r;

  // exponent · ln 2 - log(centre.inverse)
  Pair log_without_r() const {
    const auto whole = static_cast<double>(exponent);
    return {whole * kLn2High + centre.log_high, whole * kLn2Low + centre.log_low};
  }
};

// Of a positive x that is finite and not subnormal.
Reduced reduced_to_one(double x) {
  constexpr std::uint64_t kFirst = std::bit_cast<std::uint64_t>(45.0 / 64);
  const std::uint64_t offset = bits_of(x) - kFirst;
  const std::int64_t exponent = static_cast<std::int64_t>(offset) >> kMantissaBits;
  const Centre& centre = kCentres[offset >> 45 & 127];
  const double significand = of_bits(bits_of(x) - (offset >> kMantissaBits << kMantissaBits));
  // The inverse has 12 bits, so that both products are exact.
  const double first = upper(significand);
  return {exponent, centre,
          exact_sum(first * centre.inverse - 1, (significand - first) * centre.inverse)};
}

// base + log(1 + r) within 2⁻⁶⁶ of the result, where base is 0 or larger than r.
Pair log_around(Pair base, Pair r) {
  // log(1 + r) = r - r²/2 + r³/3 - …
  const double cube = r.high * r.high * r.high;
  const double square = r.high * r.high;
  const double series =
      cube * ((1.0 / 3 - r.high / 4) +
              square * ((1.0 / 5 - r.high * (1.0 / 6)) +
                        square * ((1.0 / 7 - r.high / 8) + square * (1.0 / 9 - r.high / 10))));
  const double first = upper(r.high);
  const double half_square = 0.5 * first * first;  // exact
  const double rest_of_square = 0.5 * (r.high - first) * (r.high + first) + r.high * r.low;
  const Pair near = ordered_sum(r.high, -half_square);
  const Pair sum = ordered_sum(base.high, near.high);
  const double low = sum.low + (near.low + (r.low - rest_of_square + series) + base.low);
  return ordered_sum(sum.high, low);
}

// x as a number that is not subnormal, times 2^-shift.
struct Normal {
  double x;
  std::int64_t shift;
};
Normal normal(double x) {
  if (x < 0x1p-1022) return {x * 0x1p54, 54};
  return {x, 0};
}

// The logarithm of what has none: zeros, negative numbers, infinity and NaN.
double log_of_special(double x) {
  if (x == 0) return -kInfinite;
  return x > 0 ? x : kNaN;
}
bool has_log(double x) { return x > 0 && x < kInfinite; }

// Of a positive, finite x: log x in two parts.
Pair log_in_parts(double x) {
  const Normal n = normal(x);
  Reduced at = reduced_to_one(n.x);
  at.exponent -= n.shift;
  return log_around(at.log_without_r(), at.r);
}

// Whether y is whole, and if so whether it is odd.
enum class Parity { kNotWhole, kEven, kOdd };
Parity parity(double y) {
  const double magnitude = std::abs(y);
  if (magnitude >= 0x1p53) return Parity::kEven;
  if (magnitude != std::floor(magnitude)) return Parity::kNotWhole;
  return (static_cast<std::int64_t>(magnitude) & 1) != 0 ? Parity::kOdd : Parity::kEven;
}

// xʸ where x or y is zero, infinite or NaN.
double pow_of_special(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (x != x || y != y) return kNaN;
  const double magnitude = std::abs(x);
  if (std::abs(y) == kInfinite) {
    if (magnitude == 1) return 1;
    return (magnitude > 1) == (y > 0) ? kInfinite : 0;
  }
  const double result = (magnitude == 0) == (y > 0) ? 0 : kInfinite;
  return std::signbit(x) && parity(y) == Parity::kOdd ? -result : result;
}

// xʸ for finite x > 0 and finite y.
double pow_of_positive(double x, double y) {
  if (x == 1) return 1;
  if (std::abs(y) > 0x1p65) return (x > 1) == (y > 0) ? kInfinite : 0;
  if (std::abs(y) < 0x1p-65) return 1;
  const Pair log = log_in_parts(x);
  // y · log x in two parts.
  const double y_first = upper(y);
  const double log_first = upper(log.high);
  const double rest = (log.high - log_first) + log.low;
  const Pair exponent = ordered_sum(y_first * log_first, (y - y_first) * log_first + y * rest);
  if (exponent.high >= 710) return kInfinite;
  if (exponent.high <= -746) return 0;
  return value_of(exp_of(exponent.high, exponent.low));
}

}  // namespace

double exp(double x) noexcept {
  if (!(x < 710)) return x != x ? x : kInfinite;
  if (x <= -746) return 0;
  return value_of(exp_of(x, 0));
}

double exp2(double x) noexcept {
  if (!(x < 1024)) return x != x ? x : kInfinite;
  if (x <= -1076) return 0;
  constexpr double kLn2 = kLn2High + kLn2Low;
  const double k = nearest_whole(x * 128);
  return value_of(power_of(static_cast<std::int64_t>(k), (x - k / 128) * kLn2));
}

double log(double x) noexcept {
  if (!has_log(x)) return log_of_special(x);
  const Normal n = normal(x);
  Reduced at = reduced_to_one(n.x);
  at.exponent -= n.shift;
  const Pair base = at.log_without_r();
  const double r = at.r.high;
  const double square = r * r;
  const double series =
      (-0.5 + r * (1.0 / 3)) +
      square * ((-1.0 / 4 + r * (1.0 / 5)) +
                square * ((-1.0 / 6 + r * (1.0 / 7)) + square * (-1.0 / 8 + r * (1.0 / 9))));
  const Pair sum = ordered_sum(base.high, r);
  return sum.high + (sum.low + ((at.r.low + base.low) + square * series));
}

double log2(double x) noexcept {
  if (!has_log(x)) return log_of_special(x);
  const Normal n = normal(x);
  const Reduced at = reduced_to_one(n.x);
  // log(x / 2^exponent) / ln 2
  const Pair log = log_around({at.centre.log_high, at.centre.log_low}, at.r);
  const double first = upper(log.high);
  const double rest = (log.high - first) + log.low;
  const double low = first * kLog2ELow + rest * (kLog2EHigh + kLog2ELow);
  const Pair sum = ordered_sum(static_cast<double>(at.exponent - n.shift), first * kLog2EHigh);
  return sum.high + (sum.low + low);
}

double log1p(double x) noexcept {
  if (!(x > -1 && x < kInfinite)) return x == -1 ? -kInfinite : log_of_special(x);
  if (std::abs(x) < 0x1p-54) return x;
  const Pair one_more = exact_sum(1, x);
  Reduced at = reduced_to_one(one_more.high);
  if (at.exponent < 64) {  // beyond, the low part changes nothing
    const double low = one_more.low * power_of_2(-at.exponent) * at.centre.inverse;
    const Pair sum = exact_sum(at.r.high, low);
    at.r = {sum.high, sum.low + at.r.low};
  }
  const Pair log = log_around(at.log_without_r(), at.r);
  return log.high + log.low;
}

double pow(double x, double y) noexcept {
  const double magnitude = std::abs(x);
  if (!(magnitude > 0 && magnitude < kInfinite && std::abs(y) < kInfinite) || y == 0) {
    return pow_of_special(x, y);
  }
  if (x > 0) return pow_of_positive(x, y);
  const Parity whole = parity(y);
  if (whole == Parity::kNotWhole) return kNaN;
  const double result = pow_of_positive(magnitude, y);
  return whole == Parity::kOdd ? -result : result;
}

// (e²ˣ - 1) / (e²ˣ + 1), and for small x the first terms of the series.
double tanh(double x) noexcept {
  const double magnitude = std::abs(x);
  if (magnitude < 0x1p-30) return x;
  if (magnitude < 0.125) {
    const double z = x * x;
    const double series =
        (-1.0 / 3 + z * (2.0 / 15)) +
        z * z *
            ((-17.0 / 315 + z * (62.0 / 2835)) +
             z * z *
                 ((-1382.0 / 155925 + z * (21844.0 / 6081075)) - z * z * (929569.0 / 638512875)));
    return x + x * z * series;
  }
  if (!(magnitude < 20)) return x != x ? x : std::copysign(1.0, x);
  const Power power = exp_of(2 * magnitude, 0);
  const double scaled = power.power * power_of_2(power.exponent);
  const double rest = scaled * power.rest;
  const Pair below = ordered_sum(scaled, -1);
  const Pair numerator = ordered_sum(below.high, below.low + rest);
  const Pair above = ordered_sum(scaled, 1);
  const Pair denominator = ordered_sum(above.high, above.low + rest);
  // The remainder of the first quotient, without an error.
  const double quotient = numerator.high / denominator.high;
  const double q = upper(quotient);
  const double d = upper(denominator.high);
  const double q_low = quotient - q;
  const double d_low = denominator.high - d;
  const double remainder = (((numerator.high - q * d) - q * d_low) - q_low * d) - q_low * d_low;
  const double correction =
      (remainder + (numerator.low - quotient * denominator.low)) / denominator.high;
  return std::copysign(quotient + correction, x);
}

float exp(float x) noexcept { return static_cast<float>(exp(double{x})); }
float exp2(float x) noexcept { return static_cast<float>(exp2(double{x})); }
// As for double, but r has no second part and the logarithm of the centre needs none.
float log(float x) noexcept {
  if (!(x > 0 && x < std::numeric_limits<float>::infinity())) {
    return static_cast<float>(log_of_special(x));
  }
  constexpr std::uint64_t kFirst = std::bit_cast<std::uint64_t>(45.0 / 64);
  const std::uint64_t bits = bits_of(double{x});
  const std::uint64_t offset = bits - kFirst;
  const std::int64_t exponent = static_cast<std::int64_t>(offset) >> kMantissaBits;
  const Centre& centre = kCentres[offset >> 45 & 127];
  const double significand = of_bits(bits - (offset >> kMantissaBits << kMantissaBits));
  const double r = significand * centre.inverse - 1;
  const double square = r * r;
  const double series =
      (-0.5 + r * (1.0 / 3)) + square * ((-1.0 / 4 + r * (1.0 / 5)) - square * (1.0 / 6));
  const double base = static_cast<double>(exponent) * kLn2High + centre.log_high;
  return static_cast<float>(base + (r + square * series));
}
float log2(float x) noexcept { return static_cast<float>(log2(double{x})); }
float log1p(float x) noexcept { return static_cast<float>(log1p(double{x})); }
float pow(float x, float y) noexcept { return static_cast<float>(pow(double{x}, double{y})); }
float tanh(float x) noexcept { return static_cast<float>(tanh(double{x})); }

}}}  // namespace heed::v0::elementary
