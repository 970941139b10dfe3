#include "core/multiply_add.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

namespace heed { namespace {

template <class T>
using BitsOf = std::conditional_t<std::is_same_v<T, double>, std::uint64_t, std::uint32_t>;

template <class T>
struct Sum {
  T a, b, c, rounded;
};

// The bits, so that zeros differ by their signs. All NaN are equal.
template <class T>
void expect_same(T a, T b, T c, T expected) {
  const T found = multiply_add(a, b, c);
  if (std::isnan(found) && std::isnan(expected)) return;
  ASSERT_EQ(std::bit_cast<BitsOf<T>>(found), std::bit_cast<BitsOf<T>>(expected))
      << a << " * " << b << " + " << c << " is " << found << ", not " << expected;
}

template <class T>
class MultiplyAdd : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(MultiplyAdd, Types);

// The sums were computed as fractions of whole numbers, in Python.
TEST(MultiplyAddOfDoubles, RoundsOnce) {
  const std::vector<Sum<double>> sums{
      // A product that is rounded first gives other sums.
      {-0x1.97b753ceb3ffdp-1, 0x1.9a9a8ea7b5bf5p2, -0x1.10c6794b2b8fdp3, -0x1.b442ea383bda3p3},
      {-0x1.42650781f9c59p-2, 0x1.b7970fee29477p1, 0x1.8cb4ad6225675p0, 0x1.df9fba7a40f19p-2},
      {0x1.ebcd1c9c18071p0, 0x1.cd085ba6676b3p-2, -0x1.5d92be0fd67ddp-3, 0x1.637385fbd3ep-1},
      {-0x1.7eb0a22cedafbp-1, 0x1.ac0aef729b4c9p3, 0x1.3fefd3fdd6ad5p3, 0x1.a2b1bf4d529dap-51},
      {0x1.daf01a06c05a1p0, 0x1.d55ec81daad11p1, -0x1.b364db8d45a79p2, 0x1.9a30e4c50b2c4p-53},
      // So does a sum that is rounded to 64 bits first.
      {0x1.62d9d1ad8df8ep52, 0x1.4p0, -0x1p-188, 0x1.bb904618f1771p52},
      {0x1.7c200394e093ap52, 0x1.8p0, -0x1p-162, 0x1.1d1802afa86ebp53},
      {0x1.07a4d2f4f1ffap52, 0x1.4p0, 0x1p-259, 0x1.498e07b22e7f9p52},
      // Subnormal sums.
      {-0x1.6f1da5f16d69dp-511, -0x1.f66925e8bfe4fp-511, -0x1.c7b248721e2p-1021,
       -0x0.bee9a3f6b0a2fp-1022},
      {0x1.165645aca8ed1p-507, -0x1.4d19ebe815c7fp-512, 0x1.78e60f1e236p-1019,
       0x0.75dd3c91afa05p-1022},
      // One is far smaller.
      {-0x1.9761f71e16839p1, -0x1.9049989b9deb3p-3, 0x1.7f189424891cfp-1014, 0x1.3e7f17f4248cfp-1},
      {-0x1.8dd20ab5e8103p-514, 0x1.5a5b417e209ebp-511, 0x1.2988baf5baca3p103,
       0x1.2988baf5baca3p103},
      // The product alone exceeds the largest double.
      {0x1.483e8b6929acdp512, 0x1.30a4a067e624bp512, -0x1.37783d673da2fp1023,
       0x1.d5c2792dc2dbp1023}};
  for (const auto& sum : sums) expect_same(sum.a, sum.b, sum.c, sum.rounded);
}

TEST(MultiplyAddOfFloats, RoundsOnce) {
  const std::vector<Sum<float>> sums{
      {0x1.7f74e2p3F, -0x1.a3d01ap3F, -0x1.8fcf8ap0F, -0x1.3d89ap7F},
      {0x1.82af16p-2F, 0x1.84761ap0F, -0x1.bc9ce2p-1F, -0x1.2e7602p-2F},
      {-0x1.18cc82p2F, 0x1.4556aep0F, 0x1.64dab4p2F, -0x1.3158b8p-23F},
      // A sum that is rounded to double first is another one.
      {0x1.5296ccp23F, 0x1.4p0F, -0x1p-57F, 0x1.a73c7ep23F},
      {0x1.4d53e4p23F, 0x1.4p0F, 0x1p-31F, 0x1.a0a8dep23F},
      {0x1.21b21ap23F, 0x1.8p0F, -0x1p-66F, 0x1.b28b26p23F},
      // Subnormal sums.
      {-0x1.1c3fb6p-63F, -0x1.5cda0ep-62F, -0x1.c06cp-125F, -0x1.e89a38p-128F},
      {-0x1.851bcep-62F, -0x1.5f4282p-64F, -0x1.e544p-126F, 0x1.8511bp-129F},
      // One is far smaller.
      {-0x1.e0c406p-3F, 0x1.4a76e6p1F, 0x1.80d696p-124F, -0x1.364dfep-1F},
      // The product alone exceeds the largest float.
      {0x1.219eb6p64F, -0x1.149f12p64F, 0x1.c4011ep127F, -0x1.5bca0cp126F}};
  for (const auto& sum : sums) expect_same(sum.a, sum.b, sum.c, sum.rounded);
}

TYPED_TEST(MultiplyAdd, ZerosInfinitiesAndNan) {
  using T = TypeParam;
  using Limits = std::numeric_limits<T>;
  constexpr T kInf = Limits::infinity();
  constexpr T kNan = Limits::quiet_NaN();
  const T smallest = Limits::denorm_min();
  const std::vector<Sum<T>> sums{
      {2, 3, -6, 0},
      {-2, 3, 6, 0},
      {0, -1, T{-0.0}, T{-0.0}},
      {0, 1, T{-0.0}, 0},
      {0, 5, 7, 7},
      {3, T{-0.5}, 0, T{-1.5}},
      {-smallest, smallest, 0, T{-0.0}},  // a product that is not quite 0
      {smallest, smallest, smallest, smallest},
      {-smallest, T{0.5}, 0, T{-0.0}},
      {3 * smallest, T{0.5}, 0, 2 * smallest},  // ties to even
      {1, 1, Limits::epsilon() / 2, 1},
      {1, 1 + Limits::epsilon(), Limits::epsilon() / 2, 1 + 2 * Limits::epsilon()},
      {Limits::max(), 2, 0, kInf},
      {Limits::max(), -2, 1, -kInf},
      {Limits::max(), 1, Limits::max(), kInf},
      {Limits::max(), 2, -kInf, -kInf},
      {kInf, -1, 5, -kInf},
      {kInf, 1, -kInf, kNan},
      {kInf, 0, 1, kNan},
      {kNan, 1, 1, kNan},
      {1, kNan, 1, kNan},
      {1, 1, kNan, kNan}};
  for (const auto& sum : sums) expect_same(sum.a, sum.b, sum.c, sum.rounded);
}

#if !defined(_WIN32)  // where the C library's function is not right
// Numbers of every size, numbers near 1, and products that a sum nearly cancels.
TYPED_TEST(MultiplyAdd, RoundsAsTheInstructionsOfProcessors) {
  using T = TypeParam;
  std::mt19937_64 engine(1);
  const auto any = [&] { return std::bit_cast<T>(static_cast<BitsOf<T>>(engine())); };
  const auto near = [&] {
    const T fraction = static_cast<T>(engine() >> 8) * T{0x1p-56};
    return std::ldexp(engine() % 2 == 0 ? fraction : -fraction, static_cast<int>(engine() % 9));
  };
  for (int i = 0; i < 20'000; ++i) {
    const T a = i % 2 == 0 ? any() : near();
    const T b = i % 2 == 0 ? any() : near();
    for (const T c : {any(), near(), -a * b}) expect_same(a, b, c, std::fma(a, b, c));
  }
}
#endif

}}  // namespace heed
