#include "heed/attention/rotary_frequencies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "heed/attention/rotary.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::DoubleEq;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::Refuses;
using testing_support::same_bits;

MATCHER(AreNear, "") {
  const auto [found, expected] = arg;
  return std::abs(found - expected) <= 1e-15 * expected;
}

std::vector<double> plain_frequencies(int dim, double base) {
  std::vector<double> result;
  for (int i = 0; i < dim; i += 2) result.push_back(std::pow(base, -static_cast<double>(i) / dim));
  return result;
}

void expect_frequencies(const RotaryFrequencies& found, const std::vector<double>& expected,
                        double attention_factor = 1) {
  EXPECT_THAT(elements_of(found.inv_freq), Pointwise(AreNear(), expected));
  EXPECT_THAT(found.attention_factor, DoubleEq(attention_factor));
}

TEST(RotaryFrequencies, AreThoseOfTheBase) {
  expect_frequencies(rotary_frequencies(8), {1, 0.1, 0.01, 0.001});
  expect_frequencies(rotary_frequencies(6, 5e5), plain_frequencies(6, 5e5));
  expect_frequencies(rotary_frequencies(2), {1});
  EXPECT_EQ(rotary_frequencies(0).inv_freq.shape(), (Shape{0}));
}

TEST(RotaryFrequencies, InterpolatePositions) {
  expect_frequencies(rotary_frequencies(8, 10000, LinearScaling{.factor = 8}),
                     {0.125, 0.0125, 0.00125, 0.000125});
}

TEST(RotaryFrequencies, OfDynamicNtkHaveABaseForTheLength) {
  const DynamicNtkScaling scaling{.factor = 2, .original_max_len = 100};
  for (const std::int64_t length : {1, 99, 100}) {
    EXPECT_TRUE(same_bits(rotary_frequencies(8, 10000, scaling, length).inv_freq,
                          rotary_frequencies(8).inv_freq));
  }
  // 2 · 250 / 100 − 1 = 4: the slowest pair is as slow as if positions were divided by 4.
  const auto longer = rotary_frequencies(8, 10000, scaling, 250);
  expect_frequencies(longer, plain_frequencies(8, 10000 * std::pow(4, 8.0 / 6)));
  EXPECT_NEAR(longer.inv_freq(3), 0.001 / 4, 1e-18);
  EXPECT_EQ(longer.inv_freq(0), 1);
  expect_frequencies(rotary_frequencies(2, 10000, scaling, 250), {1});
}

// The paper's definition: γ of a pair is the position of its number of turns between beta_slow and
// beta_fast; both are rounded to a pair here, as in the authors' code.
TEST(RotaryFrequencies, OfYarnMixBetweenTwoPairs) {
  const int dim = 16;
  const double base = 1e6;
  const double turned_32_times =
      dim * std::log(32768 / (64 * std::numbers::pi)) / (2 * std::log(base));
  const double turned_once = dim * std::log(32768 / (2 * std::numbers::pi)) / (2 * std::log(base));
  for (const bool truncate : {true, false}) {
    const double low = truncate ? std::floor(turned_32_times) : turned_32_times;
    const double high = truncate ? std::ceil(turned_once) : turned_once;
    std::vector<double> expected = plain_frequencies(dim, base);
    int num_mixed = 0;
    for (int i = 0; i < dim / 2; ++i) {
      auto& frequency = expected[static_cast<std::size_t>(i)];
      if (i >= high) {
        frequency /= 4;
      } else if (i > low) {
        const double interpolated = (i - low) / (high - low);
        frequency = frequency * (1 - interpolated) + frequency / 4 * interpolated;
        ++num_mixed;
      }
    }
    ASSERT_GE(num_mixed, 1);
    const YarnScaling scaling{.factor = 4, .original_max_len = 32768, .truncate = truncate};
    expect_frequencies(rotary_frequencies(dim, base, scaling), expected, 1.1386294361119891);
  }
}

TEST(RotaryFrequencies, OfYarnHaveTheAttentionFactorAskedFor) {
  YarnScaling scaling{.factor = 40, .original_max_len = 4096, .mscale = 1, .mscale_all_dim = 1};
  EXPECT_EQ(rotary_frequencies(64, 10000, scaling).attention_factor, 1);
  scaling.mscale = 0.707;
  EXPECT_DOUBLE_EQ(rotary_frequencies(64, 10000, scaling).attention_factor,
                   (1 + 0.0707 * std::log(40)) / (1 + 0.1 * std::log(40)));
  scaling.attention_factor = 1.5;
  EXPECT_EQ(rotary_frequencies(64, 10000, scaling).attention_factor, 1.5);
  EXPECT_EQ(rotary_frequencies(8, 10000, YarnScaling{.factor = 1, .original_max_len = 4096})
                .attention_factor,
            1);
}

// Both bounds are the same pair: pairs before it stay, the others are interpolated.
TEST(RotaryFrequencies, OfYarnMayHaveNothingToMix) {
  const auto found = rotary_frequencies(4, 10000, YarnScaling{.factor = 2, .original_max_len = 3});
  expect_frequencies(found, {1, 0.005}, 1 + 0.1 * std::log(2));
}

TEST(RotaryFrequencies, OfLongRopeAreDividedByTheListForTheLength) {
  LongRopeScaling scaling{.short_factor = {1, 1, 1.5, 2},
                          .long_factor = {1, 2, 16, 64},
                          .original_max_len = 4096,
                          .factor = 32};
  const double attention_factor = std::sqrt(17.0 / 12);  // 1 + ln(2⁵) / ln(2¹²)
  const std::vector<double> for_short{1, 0.1, 0.01 / 1.5, 0.001 / 2};
  expect_frequencies(rotary_frequencies(8, 10000, scaling, 1), for_short, attention_factor);
  expect_frequencies(rotary_frequencies(8, 10000, scaling, 4096), for_short, attention_factor);
  expect_frequencies(rotary_frequencies(8, 10000, scaling, 4097),
                     {1, 0.1 / 2, 0.01 / 16, 0.001 / 64}, attention_factor);
  scaling.attention_factor = 1.25;
  scaling.factor = 0;
  expect_frequencies(rotary_frequencies(8, 10000, scaling, 4096), for_short, 1.25);
}

// By cases of the wavelength, as in Llama's code.
TEST(RotaryFrequencies, OfLlama3MixBetweenTwoWavelengths) {
  const int dim = 32;
  std::vector<double> expected = plain_frequencies(dim, 5e5);
  int num_mixed = 0;
  for (double& frequency : expected) {
    const double wavelength = 2 * std::numbers::pi / frequency;
    if (wavelength < 8192.0 / 4) continue;
    if (wavelength > 8192.0 / 1) {
      frequency /= 8;
    } else {
      const double smooth = (8192 / wavelength - 1) / (4 - 1);
      frequency = (1 - smooth) * frequency / 8 + smooth * frequency;
      ++num_mixed;
    }
  }
  ASSERT_GE(num_mixed, 1);
  expect_frequencies(
      rotary_frequencies(dim, 5e5, Llama3Scaling{.factor = 8, .original_max_len = 8192}), expected);
}

TEST(RotaryFrequencies, MakeCaches) {
  RotaryFrequencies frequencies{.inv_freq = Tensor<double>({2}, {0.5, 3}), .attention_factor = 1.5};
  const auto caches = rotary_caches<double>(4, frequencies);
  ASSERT_EQ(caches.cos.shape(), (Shape{4, 2}));
  for (int position = 0; position < 4; ++position) {
    EXPECT_DOUBLE_EQ(caches.cos(position, 0), 1.5 * std::cos(0.5 * position));
    EXPECT_DOUBLE_EQ(caches.sin(position, 1), 1.5 * std::sin(3.0 * position));
  }
  EXPECT_EQ(rotary_caches(4, frequencies).sin(3, 1), static_cast<float>(caches.sin(3, 1)));
  frequencies.inv_freq = Tensor<double>({1, 2});
  EXPECT_THAT([&] { rotary_caches(4, frequencies); }, Refuses("inv_freq", "[1, 2]"));
}

struct Refused {
  RotaryScaling scaling;
  std::string text;
  double base = 10000;
  std::optional<std::int64_t> length = 5;
};

std::vector<Refused> refused_scalings() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> two{1, 2};
  return {
      {LinearScaling{}, "LinearScaling::factor is 0, expected a number, at least 1"},
      {LinearScaling{.factor = nan}, "LinearScaling::factor is nan"},
      {DynamicNtkScaling{.factor = 0.5}, "DynamicNtkScaling::factor is 0.5"},
      {DynamicNtkScaling{.factor = 2}, "DynamicNtkScaling::original_max_len is 0, expected a pos"},
      {YarnScaling{}, "YarnScaling::factor is 0"},
      {YarnScaling{.factor = 2}, "YarnScaling::original_max_len is 0"},
      {YarnScaling{.factor = 2, .original_max_len = 9},
       "base (rope_theta) is 1, expected more than 1 for YarnScaling", 1},
      {YarnScaling{.factor = 2, .original_max_len = 9, .beta_slow = 0},
       "YarnScaling::beta_slow is 0"},
      {YarnScaling{.factor = 2, .original_max_len = 9, .beta_fast = 1},
       "YarnScaling::beta_fast is 1, expected more than beta_slow, 1"},
      {YarnScaling{.factor = 2, .original_max_len = 9, .attention_factor = 0},
       "YarnScaling::attention_factor is 0"},
      {YarnScaling{.factor = 2, .original_max_len = 9, .mscale = 1},
       "YarnScaling has one of mscale and mscale_all_dim, expected both or none"},
      {YarnScaling{.factor = 2, .original_max_len = 9, .mscale = 1, .mscale_all_dim = -1},
       "YarnScaling::mscale_all_dim is -1"},
      {LongRopeScaling{two, two, 1, 2},
       "LongRopeScaling::original_max_len is 1, expected at least"},
      {LongRopeScaling{two, two, 4}, "LongRopeScaling::factor is 0"},
      {LongRopeScaling{{1}, two, 4, 2},
       "the size of LongRopeScaling::short_factor is 1, expected rotary_dim / 2 = 2"},
      {LongRopeScaling{two, {1, 0}, 4, 2}, "a number of LongRopeScaling::long_factor is 0"},
      {Llama3Scaling{}, "Llama3Scaling::factor is 0"},
      {Llama3Scaling{.factor = 8}, "Llama3Scaling::original_max_len is 0"},
      {Llama3Scaling{.factor = 8, .original_max_len = 9, .low_freq_factor = 0},
       "Llama3Scaling::low_freq_factor is 0"},
      {Llama3Scaling{.factor = 8, .original_max_len = 9, .high_freq_factor = 1},
       "Llama3Scaling::high_freq_factor is 1, expected more than low_freq_factor, 1"},
      {DynamicNtkScaling{2, 9}, "length is not given, but DynamicNtkScaling depends", 10, {}},
      {LongRopeScaling{two, two, 4, 2}, "length is not given, but LongRopeScaling depends", 10, {}},
      {DynamicNtkScaling{2, 9}, "length is 0, expected a positive number", 10, 0},
      {{}, "base (rope_theta) is -1, expected a positive number", -1},
      {{}, "base (rope_theta) is inf", std::numeric_limits<double>::infinity()},
  };
}

TEST(RotaryFrequencies, RefuseMisuse) {
  for (const Refused& refused : refused_scalings()) {
    EXPECT_THAT([&] { rotary_frequencies(4, refused.base, refused.scaling, refused.length); },
                ThrowsMessage<InvalidArgument>(HasSubstr("rotary_frequencies: " + refused.text)));
  }
  EXPECT_THAT([] { rotary_frequencies(-2); }, Refuses("rotary_dim", "-2"));
}

}  // namespace
}  // namespace heed
