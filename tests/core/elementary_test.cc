// The elementary functions, compared with the long double of a C library where that has more
// digits, with numbers computed to 400 digits, and with recorded bits.
#include "heed/core/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace heed::elementary_test { namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A sequence of 64-bit numbers that is the same everywhere (SplitMix64).
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

// Positive arguments between two numbers: spread over their bits, so that all magnitudes occur
// alike, or evenly over the range.
struct Range {
  double low, high;
  bool by_magnitude;
  bool with_negatives;

  double draw(Numbers& numbers) const {
    const std::uint64_t bits = numbers.next();
    double x = low + (high - low) * (static_cast<double>(bits >> 11) * 0x1p-53);
    if (by_magnitude) {
      const auto first = std::bit_cast<std::uint64_t>(low);
      x = std::bit_cast<double>(first + bits % (std::bit_cast<std::uint64_t>(high) - first));
    }
    return with_negatives && (numbers.next() & 1) != 0 ? -x : x;
  }
};
constexpr bool kByMagnitude = true;
constexpr bool kEvenly = false;
constexpr bool kBothSigns = true;
constexpr bool kAsGiven = false;

using Long = long double;

struct Function {
  const char* name;
  double (*of)(double);
  float (*of_float)(float);
  Long (*exact)(Long);
  double bound;  // of the error, in units in the last place
  std::vector<Range> ranges;
};

const std::vector<Function>& functions() {
  static const std::vector<Function> all = {
      {"exp",
       elementary::exp,
       elementary::exp,
       [](Long x) { return std::exp(x); },
       0.511,
       {{-745.5, 709.75, kEvenly, kAsGiven}, {1e-20, 8, kByMagnitude, kBothSigns}}},
      {"exp2",
       elementary::exp2,
       elementary::exp2,
       [](Long x) { return std::exp2(x); },
       0.511,
       {{-1075, 1023.99, kEvenly, kAsGiven}, {1e-20, 8, kByMagnitude, kBothSigns}}},
      {"log",
       elementary::log,
       elementary::log,
       [](Long x) { return std::log(x); },
       0.51,
       {{0x1p-1074, 1e308, kByMagnitude, kAsGiven},
        {0.5, 2, kEvenly, kAsGiven},
        {0.98, 1.02, kEvenly, kAsGiven}}},
      {"log2",
       elementary::log2,
       elementary::log2,
       [](Long x) { return std::log2(x); },
       0.51,
       {{0x1p-1074, 1e308, kByMagnitude, kAsGiven},
        {0.5, 2, kEvenly, kAsGiven},
        {0.98, 1.02, kEvenly, kAsGiven}}},
      {"log1p",
       elementary::log1p,
       elementary::log1p,
       [](Long x) { return std::log1p(x); },
       0.51,
       {{1e-20, 1e308, kByMagnitude, kAsGiven}, {-1, 1, kEvenly, kAsGiven}}},
      {"sin",
       elementary::sin,
       elementary::sin,
       [](Long x) { return std::sin(x); },
       0.54,
       {{-10, 10, kEvenly, kAsGiven},
        {0.1, 0.3, kEvenly, kAsGiven},
        {1e-20, 1e300, kByMagnitude, kBothSigns}}},
      {"cos",
       elementary::cos,
       elementary::cos,
       [](Long x) { return std::cos(x); },
       0.54,
       {{-10, 10, kEvenly, kAsGiven}, {1e-20, 1e300, kByMagnitude, kBothSigns}}},
      {"tanh",
       elementary::tanh,
       elementary::tanh,
       [](Long x) { return std::tanh(x); },
       0.53,
       {{-1, 1, kEvenly, kAsGiven}, {1e-20, 25, kByMagnitude, kBothSigns}}},
  };
  return all;
}

// The distance of two numbers in the units of the last place of the exact one.
double error_of(double found, Long exact) {
  int exponent = 0;
  std::frexp(static_cast<double>(exact), &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs(found - exact) / static_cast<Long>(unit));
}

// True if the C library's functions of long double are good enough to compare with.
bool has_long_numbers() {
#ifdef _WIN32
  return false;  // mingw-w64's sine of large angles is wrong, and its powers err by half a unit
#else
  return std::numeric_limits<Long>::digits >= 64;  // the units below are then within 0.001
#endif
}

TEST(Elementary, ErrsByHalfAUnitInTheLastPlace) {
  if (!has_long_numbers()) GTEST_SKIP() << "the C library has no better numbers";
  for (const Function& function : functions()) {
    Numbers numbers(1);
    double largest = 0;
    double at = 0;
    for (const Range& range : function.ranges) {
      for (int i = 0; i < 12000; ++i) {
        const double x = range.draw(numbers);
        const double error = error_of(function.of(x), function.exact(x));
        if (error > largest) largest = error, at = x;
      }
    }
    EXPECT_LE(largest, function.bound) << function.name << " of " << at;
    EXPECT_GE(largest, 0.49) << function.name << " was not measured";
  }
}

TEST(Elementary, PowersErrByHalfAUnitInTheLastPlace) {
  if (!has_long_numbers()) GTEST_SKIP() << "the C library has no better numbers";
  Numbers numbers(2);
  const Range bases[] = {{1e-307, 1e307, kByMagnitude, kAsGiven},
                         {0.5, 2, kEvenly, kAsGiven},
                         {0.999, 1.001, kEvenly, kAsGiven}};
  const Range exponents{-700, 700, kEvenly, kAsGiven};  // times 1 / log(base)
  double largest = 0;
  for (const Range& base : bases) {
    for (int i = 0; i < 10000; ++i) {
      const double x = base.draw(numbers);
      double y = exponents.draw(numbers) / elementary::log(x);
      if (i % 4 == 0) y = std::floor(exponents.draw(numbers) / 80);
      const double found = elementary::pow(x, y);
      const Long exact = std::pow(static_cast<Long>(x), static_cast<Long>(y));
      const auto rounded = static_cast<double>(exact);
      if (rounded == kInf) {
        EXPECT_EQ(found, kInf);
      } else {
        const double error = error_of(found, exact);
        EXPECT_LE(error, 0.52) << x << " to the power of " << y;
        largest = std::max(largest, error);
      }
    }
  }
  EXPECT_GE(largest, 0.49);
}

TEST(Elementary, FloatsAreTheNearest) {
  for (const Function& function : functions()) {
    Numbers numbers(3);
    int others = 0;
    for (const Range& range : function.ranges) {
      for (int i = 0; i < 20000; ++i) {
        const auto x = static_cast<float>(range.draw(numbers));
        const auto nearest = static_cast<float>(function.of(double{x}));
        const float found = function.of_float(x);
        if (nearest != found && nearest == nearest) ++others;
      }
    }
    EXPECT_EQ(others, 0) << function.name;
  }
  EXPECT_EQ(elementary::pow(2.5F, 3.5F), static_cast<float>(elementary::pow(2.5, 3.5)));
}

// Angles that are close to multiples of a quarter turn, huge ones, and the ends of the branches;
// computed with mpmath to 1300 bits and rounded.
TEST(Elementary, ReducesTheHardestAngles) {
  struct Known {
    double x, sine, cosine;
  };
  const Known known[] = {
      {0x1.6ac5b262ca1ffp+849, 0x1.0000000000000p+0, -0x1.14ae72e6ba22fp-61},
      {0x1.921fb54442d18p+0, 0x1.0000000000000p+0, 0x1.1a62633145c07p-54},
      {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, -0x1.0000000000000p+0},
      {0x1.0f0cf064dd592p+73, -0x1.b453ab76bf397p-1, 0x1.0be2cef01c8f4p-1},
      {0x1.fffffffffffffp+1023, 0x1.452fc98b34e97p-8, -0x1.fffe62ecfab75p-1},
      {0x1.ee92d8dbefc5ap+7, 0x1.90bf6c0f1a9b7p-1, -0x1.3ea961dafb3d5p-1},
      {0x1.0000000000000p+120, 0x1.82e34655e6fcbp-2, -0x1.da0cd0b66d8cep-1},
      {0x1.8f5c28f5c28f6p-1, 0x1.68143d72d4ce4p-1, 0x1.6bfcdbf817bfap-1},
      {0x1.0000000000000p-3, 0x1.feaaeee86ee36p-4, 0x1.fc015527d5bd3p-1},
      {0x1.0000000000000p-26, 0x1.0000000000000p-26, 0x1.fffffffffffffp-1},
  };
  for (const Known& angle : known) {
    EXPECT_EQ(elementary::sin(angle.x), angle.sine) << angle.x;
    EXPECT_EQ(elementary::sin(-angle.x), -angle.sine) << angle.x;
    EXPECT_EQ(elementary::cos(angle.x), angle.cosine) << angle.x;
    EXPECT_EQ(elementary::cos(-angle.x), angle.cosine) << angle.x;
  }
}

void expect_same(double found, double expected, const std::string& what) {
  if (expected != expected) {
    EXPECT_TRUE(found != found) << what << " is " << found;
    return;
  }
  EXPECT_EQ(std::bit_cast<std::uint64_t>(found), std::bit_cast<std::uint64_t>(expected))
      << what << " is " << found << " instead of " << expected;
}

// Annex F of the standard of C.
TEST(Elementary, TreatsSpecialNumbersAsTheStandardSays) {
  struct Known {
    const char* name;
    double x, y;
  };
  const Known known[] = {
      {"exp", 0.0, 1},
      {"exp", -0.0, 1},
      {"exp", -kInf, 0},
      {"exp", kInf, kInf},
      {"exp", kNan, kNan},
      {"exp", 1e4, kInf},
      {"exp", -1e4, 0},
      {"exp", -745.2, 0},
      {"exp", -745.1, 0x1p-1074},
      {"exp", 709.79, kInf},
      {"exp2", 1023, 0x1p1023},
      {"exp2", -1074, 0x1p-1074},
      {"exp2", -1076, 0},
      {"exp2", 1024, kInf},
      {"exp2", -kInf, 0},
      {"exp2", kInf, kInf},
      {"exp2", kNan, kNan},
      {"exp2", -0.0, 1},
      {"exp2", 12, 4096},
      {"log", 1, 0.0},
      {"log", 0.0, -kInf},
      {"log", -0.0, -kInf},
      {"log", -1, kNan},
      {"log", -kInf, kNan},
      {"log", kInf, kInf},
      {"log", kNan, kNan},
      {"log2", 1, 0.0},
      {"log2", 0x1p-1074, -1074},
      {"log2", 0x1p1023, 1023},
      {"log2", 0.0, -kInf},
      {"log2", -1, kNan},
      {"log2", kInf, kInf},
      {"log2", kNan, kNan},
      {"log1p", 0.0, 0.0},
      {"log1p", -0.0, -0.0},
      {"log1p", -1, -kInf},
      {"log1p", -2, kNan},
      {"log1p", kInf, kInf},
      {"log1p", kNan, kNan},
      {"log1p", 0x1p-1074, 0x1p-1074},
      {"sin", 0.0, 0.0},
      {"sin", -0.0, -0.0},
      {"sin", kInf, kNan},
      {"sin", -kInf, kNan},
      {"sin", kNan, kNan},
      {"sin", 0x1p-1074, 0x1p-1074},
      {"cos", 0.0, 1},
      {"cos", -0.0, 1},
      {"cos", kInf, kNan},
      {"cos", kNan, kNan},
      {"tanh", 0.0, 0.0},
      {"tanh", -0.0, -0.0},
      {"tanh", kInf, 1},
      {"tanh", -kInf, -1},
      {"tanh", kNan, kNan},
      {"tanh", 30, 1},
      {"tanh", -0x1p-1074, -0x1p-1074},
  };
  for (const Known& one : known) {
    for (const Function& function : functions()) {
      if (std::string(function.name) != one.name) continue;
      const std::string what = std::string(one.name) + "(" + std::to_string(one.x) + ")";
      expect_same(function.of(one.x), one.y, what);
      const auto x = static_cast<float>(one.x);
      if (double{x} != one.x) continue;
      expect_same(function.of_float(x), static_cast<float>(one.y), "float " + what);
    }
  }
}

TEST(Elementary, PowersOfSpecialNumbersAreAsTheStandardSays) {
  struct Known {
    double x, y, power;
  };
  const Known known[] = {
      {0.0, -3, kInf},
      {-0.0, -3, -kInf},
      {-0.0, -2, kInf},
      {0.0, -0.5, kInf},
      {0.0, 3, 0.0},
      {-0.0, 3, -0.0},
      {-0.0, 2, 0.0},
      {0.0, -kInf, kInf},
      {0.0, kInf, 0.0},
      {-1, kInf, 1},
      {-1, -kInf, 1},
      {1, kNan, 1},
      {kNan, 0, 1},
      {kInf, 0, 1},
      {-2, 0.5, kNan},
      {0.5, -kInf, kInf},
      {2, -kInf, 0.0},
      {0.5, kInf, 0.0},
      {2, kInf, kInf},
      {-kInf, -3, -0.0},
      {-kInf, -2, 0.0},
      {-kInf, 3, -kInf},
      {-kInf, 2, kInf},
      {kInf, -1, 0.0},
      {kInf, 1, kInf},
      {kNan, 1, kNan},
      {2, kNan, kNan},
      {-2, 3, -8},
      {-2, 2, 4},
      {2, 1023, 0x1p1023},
      {2, -1074, 0x1p-1074},
      {2, 1024, kInf},
      {2, -1080, 0.0},
      {-2, 1025, -kInf},
      {2, 1e300, kInf},
      {0.5, 1e300, 0.0},
      {2, 1e-300, 1},
      {0x1p-1074, 1, 0x1p-1074},
      {10, 3, 1000},
      {-1, 1e300, 1},
  };
  for (const Known& one : known) {
    expect_same(elementary::pow(one.x, one.y), one.power,
                std::to_string(one.x) + " to the power of " + std::to_string(one.y));
  }
}

// One hash for all processors, compilers and C libraries.
TEST(Elementary, ResultsHaveTheRecordedBits) {
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](double y) {
    const double number = y != y ? kNan : y;
    hash = (hash ^ std::bit_cast<std::uint64_t>(number)) * 0x100000001b3;
    hash ^= hash >> 32;
  };
  Numbers numbers(4);
  for (const Function& function : functions()) {
    for (const Range& range : function.ranges) {
      for (int i = 0; i < 50000; ++i) {
        const double x = range.draw(numbers);
        add(function.of(x));
        if (i % 8 == 0) add(function.of_float(static_cast<float>(x)));
      }
    }
  }
  const Range bases{1e-3, 1e3, kByMagnitude, kBothSigns};
  const Range exponents{-50, 50, kEvenly, kAsGiven};
  for (int i = 0; i < 100000; ++i) {
    const double x = bases.draw(numbers);
    const double y = exponents.draw(numbers);
    add(elementary::pow(x, i % 2 == 0 ? y : std::floor(y)));
  }
  EXPECT_EQ(hash, 2838358386063782055U);
}

}  // namespace
}  // namespace heed::elementary_test
