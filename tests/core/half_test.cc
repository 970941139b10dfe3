#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "heed/core/data_type.h"

namespace heed { namespace {

template <class Half>
void expect_every_value_round_trips() {
  for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const Half half = Half::from_bits(static_cast<std::uint16_t>(bits));
    const float value = half;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(static_cast<float>(Half(value)))) << bits;
    } else {
      EXPECT_EQ(Half(value).bits(), bits);
    }
  }
}

TEST(Float16, EveryValueRoundTrips) { expect_every_value_round_trips<Float16>(); }
TEST(BFloat16, EveryValueRoundTrips) { expect_every_value_round_trips<BFloat16>(); }

// Between two neighbouring halves the midpoint rounds to the even one, other numbers to the nearer
// one.
template <class Half>
void expect_rounds_to_nearest_even(std::uint32_t largest_finite) {
  for (std::uint32_t bits = 0; bits < largest_finite; ++bits) {
    const float low = Half::from_bits(static_cast<std::uint16_t>(bits));
    const float high = Half::from_bits(static_cast<std::uint16_t>(bits + 1));
    const float middle = static_cast<float>((static_cast<double>(low) + high) / 2);
    const std::uint32_t even = bits + (bits & 1U);
    ASSERT_EQ(Half(middle).bits(), even);
    ASSERT_EQ(Half(std::nextafter(middle, low)).bits(), bits);
    ASSERT_EQ(Half(std::nextafter(middle, high)).bits(), bits + 1);
    ASSERT_EQ(Half(-middle).bits(), even | 0x8000U);
  }
}

TEST(Float16, RoundsToNearestEven) { expect_rounds_to_nearest_even<Float16>(0x7bff); }
TEST(BFloat16, RoundsToNearestEven) { expect_rounds_to_nearest_even<BFloat16>(0x7f7f); }

TEST(Float16, OverflowsToInfinity) {
  EXPECT_EQ(Float16(65519.0F).bits(), 0x7bff);
  EXPECT_EQ(Float16(65520.0F).bits(), 0x7c00);
  EXPECT_EQ(Float16(-std::numeric_limits<float>::infinity()).bits(), 0xfc00);
  EXPECT_EQ(Float16(0x1p-25F).bits(), 0);
  EXPECT_EQ(Float16(0x1.000002p-25F).bits(), 1);
}

}  // namespace
}  // namespace heed
