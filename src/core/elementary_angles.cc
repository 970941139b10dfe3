// sin and cos. An angle is first reduced to a quarter turn around 0, without loss however large it
// is, by integers of 192 bits (Payne and Hanek, "Radian reduction for trigonometric functions",
// 1983). Tables of both functions then leave a short series, as in elementary.cc.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/elementary_tables.h"
#include "heed/core/elementary.h"

namespace heed { inline namespace v0 { namespace elementary {

namespace {

__extension__ using Wide = unsigned __int128;

// An angle from -π/4 to π/4, in two parts, and the quarter turns before it, modulo 4.
struct Angle {
  double high, low;
  unsigned quarters;
};

// 2ⁿ for |n| <= 1022.
double whole_power_of_2(int n) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(n + 1023) << 52);
}

// 192 bits, the lowest first.
struct Words {
  std::uint64_t word[3];
};

// The bits of 2/π that matter for a number with the unit 2^exponent: those before are multiples of
// four quarter turns.
Words bits_of_two_over_pi(int exponent) {
  const int first = exponent + 62;
  const int index = first / 64;
  const int shift = first % 64;
  Words result{};
  for (int i = 0; i < 3; ++i) {
    const Wide both = Wide{kTwoOverPi[index + 2 - i]} << 64 | kTwoOverPi[index + 3 - i];
    result.word[i] = static_cast<std::uint64_t>(both << shift >> 64);
  }
  return result;
}

// significand · 2^exponent as quarter turns, modulo 4, times 2¹⁹⁰.
Words quarter_turns(std::uint64_t significand, int exponent) {
  const Words factor = bits_of_two_over_pi(exponent);
  const Wide low = Wide{significand} * factor.word[0];
  const Wide middle = Wide{significand} * factor.word[1] + static_cast<std::uint64_t>(low >> 64);
  const std::uint64_t high =
      significand * factor.word[2] + static_cast<std::uint64_t>(middle >> 64);
  return {{static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(middle), high}};
}

// The first 128 bits of a fraction, shifted until the first is 1; `shift` says how far.
Wide leading_bits(Words fraction, int& shift) {
  shift = 0;
  if (fraction.word[2] == 0) {
    fraction = {{0, fraction.word[0], fraction.word[1]}};
    shift = 64;
  }
  const int zeros = std::countl_zero(fraction.word[2]) & 63;
  shift += zeros;
  const Wide high = Wide{fraction.word[2]} << 64 | fraction.word[1];
  return zeros == 0 ? high : high << zeros | fraction.word[0] >> (64 - zeros);
}

// a · π/4 for a fraction of 128 bits, within 3 units of the last.
Wide times_quarter_pi(Wide a) {
  const auto a_high = static_cast<std::uint64_t>(a >> 64);
  const auto a_low = static_cast<std::uint64_t>(a);
  return Wide{a_high} * kQuarterPi[0] + (Wide{a_high} * kQuarterPi[1] >> 64) +
         (Wide{a_low} * kQuarterPi[0] >> 64);
}

// Of a finite x with |x| > π/4 / 2.
Angle reduced(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  constexpr std::uint64_t kHidden = std::uint64_t{1} << 52;
  const auto exponent = static_cast<int>(bits >> 52 & 2047) - 1075;
  Words turns = quarter_turns((bits & (kHidden - 1)) | kHidden, exponent);
  // The whole quarters, rounded to nearest, and the magnitude of the rest.
  unsigned quarters = static_cast<unsigned>(turns.word[2] >> 62);
  turns.word[2] = turns.word[2] << 2 | turns.word[1] >> 62;
  turns.word[1] = turns.word[1] << 2 | turns.word[0] >> 62;
  turns.word[0] <<= 2;
  const bool is_negative = turns.word[2] >> 63 != 0;
  if (is_negative) {
    ++quarters;
    turns = {{~turns.word[0], ~turns.word[1], ~turns.word[2]}};  // but for the last bit
  }
  int shift = 0;
  const Wide product = times_quarter_pi(leading_bits(turns, shift));
  const auto first = static_cast<std::int64_t>(product >> 75);                      // 53 bits
  const auto second = static_cast<std::int64_t>(product >> 12 & (~Wide{0} >> 65));  // the next 63
  const double unit = whole_power_of_2(1 - shift - 53);
  double high = static_cast<double>(first) * unit;
  double low = static_cast<double>(second) * (unit * 0x1p-63);
  const double sum = high + low;
  low = (high - sum) + low;
  high = sum;
  if (is_negative != std::signbit(x)) {
    high = -high;
    low = -low;
  }
  return {high, low, std::signbit(x) ? 0U - quarters : quarters};
}

Angle quarter_angle(double x) {
  if (std::abs(x) <= 0.78) return {x, 0, 0};
  return reduced(x);
}

// sin r - r and cos r - 1 for |r| < 0.004.
double sine_rest(double r) {
  const double z = r * r;
  return r * z * (-1.0 / 6 + z * (1.0 / 120));
}
double cosine_rest(double r) {
  const double z = r * r;
  return z * (-0.5 + z * (1.0 / 24 - z * (1.0 / 720)));
}

// The row of the table that is nearest to an angle of at least 1/8, and the rest of the angle.
struct Near {
  const Turn& turn;
  double rest, low;
};
Near nearest_row(double high, double low) {
  const int i = static_cast<int>(high * 128 + 0.5);
  const int row = i < 16 ? 16 : i > 101 ? 101 : i;
  return {kTurns[row - 16], high - row / 128.0, low};
}

double sine_of(Angle angle) {
  const double magnitude = std::abs(angle.high);
  if (magnitude < 0.125) {
    const double z = angle.high * angle.high;
    const double series = (-1.0 / 6 + z * (1.0 / 120)) +
                          z * z * ((-1.0 / 5040 + z * (1.0 / 362880)) - z * z * (1.0 / 39916800));
    return angle.high + (angle.high * z * series + angle.low * (1 - z * 0.5));
  }
  const bool is_negative = angle.high < 0;
  const Near at = nearest_row(magnitude, is_negative ? -angle.low : angle.low);
  const Turn& turn = at.turn;
  const double low =
      turn.sine_low + turn.cosine_low * at.rest +
      (turn.cosine * (sine_rest(at.rest) + at.low) + turn.sine * cosine_rest(at.rest));
  const double result = turn.sine + (turn.cosine * at.rest + low);
  return is_negative ? -result : result;
}

double cosine_of(Angle angle) {
  const double magnitude = std::abs(angle.high);
  if (magnitude < 0.125) {
    const double z = angle.high * angle.high;
    const double series =
        (1.0 / 24 - z * (1.0 / 720)) + z * z * (1.0 / 40320 - z * (1.0 / 3628800));
    const double half = 0.5 * z;
    const double most = 1 - half;
    return most + (((1 - most) - half) + (z * z * series - angle.high * angle.low));
  }
  const Near at = nearest_row(magnitude, angle.high < 0 ? -angle.low : angle.low);
  const Turn& turn = at.turn;
  const double low =
      turn.cosine_low - turn.sine_low * at.rest +
      (turn.cosine * cosine_rest(at.rest) - turn.sine * (sine_rest(at.rest) + at.low));
  return turn.cosine + (low - turn.sine * at.rest);
}

constexpr double kNoAngle = std::numeric_limits<double>::quiet_NaN();
bool is_finite(double x) { return std::abs(x) < std::numeric_limits<double>::infinity(); }

}  // namespace

double sin(double x) noexcept {
  if (!is_finite(x)) return kNoAngle;
  if (std::abs(x) < 0x1p-30) return x;
  const Angle angle = quarter_angle(x);
  const double result = (angle.quarters & 1) != 0 ? cosine_of(angle) : sine_of(angle);
  return (angle.quarters & 2) != 0 ? -result : result;
}

double cos(double x) noexcept {
  if (!is_finite(x)) return kNoAngle;
  const Angle angle = quarter_angle(x);
  const double result = (angle.quarters & 1) != 0 ? sine_of(angle) : cosine_of(angle);
  return ((angle.quarters + 1) & 2) != 0 ? -result : result;
}

float sin(float x) noexcept { return static_cast<float>(sin(double{x})); }
float cos(float x) noexcept { return static_cast<float>(cos(double{x})); }

}}}  // namespace heed::v0::elementary
