#include "core/multiply_add.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace heed { inline namespace v0 {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr int kFractionBits = 52;
constexpr std::uint64_t kImplicitBit = std::uint64_t{1} << kFractionBits;
constexpr int kLargestField = 0x7ff;  // of the exponent: infinities and NaN
constexpr int kBias = 1023;

// |x| = mantissa · 2^exponent, with the highest bit of the mantissa set. x is finite and not 0.
struct Magnitude {
  std::uint64_t mantissa;
  int exponent;

  explicit Magnitude(double x) {
    const auto bits = std::bit_cast<std::uint64_t>(x);
    const int field = static_cast<int>(bits >> kFractionBits) & kLargestField;
    mantissa = bits % kImplicitBit + (field == 0 ? 0 : kImplicitBit);
    const int shift = std::countl_zero(mantissa);
    mantissa <<= shift;
    exponent = (field == 0 ? 1 : field) - kBias - kFractionBits - shift;
  }
};

// bits / 2^count. The lowest bit stands for all that are lost, so that later rounding is right.
template <class Bits>
Bits shifted(Bits bits, int count) {
  if (count == 0) return bits;
  if (count >= 8 * static_cast<int>(sizeof(Bits))) return Bits{1};
  const Bits kept = bits >> count;
  return kept << count == bits ? kept : kept | 1;
}

// bits · 2^exponent, rounded to nearest, ties to even. The highest bit that is set is bit 62.
double rounded(std::uint64_t bits, int exponent) {
  constexpr int kExtra = 62 - kFractionBits;
  constexpr std::uint64_t kHalf = std::uint64_t{1} << (kExtra - 1);
  int field = exponent + 62 + kBias;
  if (field <= 0) {  // subnormal
    bits = shifted(bits, 1 - field);
    field = 0;
  }
  std::uint64_t kept = bits >> kExtra;
  const std::uint64_t rest = bits % (2 * kHalf);
  if (rest > kHalf || (rest == kHalf && kept % 2 == 1)) ++kept;
  // The implicit bit, or the bit that rounding carried there, adds 1 to the exponent's field.
  if (field > 0) kept += static_cast<std::uint64_t>(field - 1) << kFractionBits;
  constexpr std::uint64_t kInfinite = std::uint64_t{kLargestField} << kFractionBits;
  return std::bit_cast<double>(field >= kLargestField || kept > kInfinite ? kInfinite : kept);
}

// wide · 2^exponent, rounded. wide is not 0.
double rounded_wide(Wide wide, int exponent) {
  const auto high = static_cast<std::uint64_t>(wide >> 64);
  const int zeros =
      high != 0 ? std::countl_zero(high) : 64 + std::countl_zero(static_cast<std::uint64_t>(wide));
  const Wide in_place = wide << (zeros - 1);
  return rounded(static_cast<std::uint64_t>(shifted(in_place, 64)), exponent - (zeros - 1) + 64);
}

}  // namespace

double multiply_add(double a, double b, double c) {
  if (!std::isfinite(a) || !std::isfinite(b) || a == 0 || b == 0) return a * b + c;
  if (!std::isfinite(c)) return c;
  if (c == 0) return a * b;
  const Magnitude x(a);
  const Magnitude y(b);
  const Magnitude z(c);
  // Both below 2^126, so that their sum fits. The bits that a difference brings to the top are not
  // lost ones: 22 bits or more at the end of each are 0.
  Wide product = Wide{x.mantissa} * y.mantissa >> 2;
  Wide addend = Wide{z.mantissa} << 62;
  const int exponent_of_product = x.exponent + y.exponent + 2;
  const int exponent_of_addend = z.exponent - 62;
  const int exponent = std::max(exponent_of_product, exponent_of_addend);
  product = shifted(product, exponent - exponent_of_product);
  addend = shifted(addend, exponent - exponent_of_addend);

  const bool product_is_negative = std::signbit(a) != std::signbit(b);
  bool is_less_than_0 = product_is_negative;
  Wide sum = product + addend;
  if (product_is_negative != std::signbit(c)) {
    if (product == addend) return 0;
    if (product < addend) {
      std::swap(product, addend);
      is_less_than_0 = !is_less_than_0;
    }
    sum = product - addend;
  }
  const double magnitude = rounded_wide(sum, exponent);
  return is_less_than_0 ? -magnitude : magnitude;
}

// A product of floats is exact in double. A sum in double that is rounded to an odd mantissa unless
// it is exact can be rounded again.
float multiply_add(float a, float b, float c) {
  const double product = double{a} * double{b};
  const double sum = product + double{c};
  const double part_of_c = sum - product;
  const double lost = (product - (sum - part_of_c)) + (double{c} - part_of_c);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (!(std::abs(lost) > 0) || !std::isfinite(sum) || bits % 2 == 1) return static_cast<float>(sum);
  const bool grows = (lost > 0) == (sum > 0);
  return static_cast<float>(std::bit_cast<double>(grows ? bits + 1 : bits - 1));
}

}}  // namespace heed::v0
