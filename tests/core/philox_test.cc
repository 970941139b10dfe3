#include "core/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "attention/masks/dropout_mask.h"

namespace heed { namespace {

using Words = std::array<std::uint32_t, 4>;

// The known answers of Random123, the library of the authors.
static_assert(philox({0, 0, 0, 0}, {0, 0}) ==
              Words{0x6627e8d5U, 0xe169c58dU, 0xbc57ac4cU, 0x9b00dbd8U});
static_assert(philox({~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) ==
              Words{0x408f276dU, 0x41c83b0eU, 0xa20bc7c6U, 0x6d5451fdU});
static_assert(philox({0x243f6a88U, 0x85a308d3U, 0x13198a2eU, 0x03707344U},
                     {0xa4093822U, 0x299f31d0U}) ==
              Words{0xd16cfe09U, 0x94fdccebU, 0x5001e420U, 0x24126ea1U});

TEST(DropoutMask, DropsTheAskedShareAndScalesTheRest) {
  const DropoutMask mask({.probability = 0.25F, .seed = 7});
  std::int64_t dropped = 0;
  constexpr std::int32_t kCells = 400;
  for (std::int32_t q = 0; q < kCells; ++q) {
    for (std::int32_t k = 0; k < kCells; ++k) {
      const double factor = mask.factor({0, 1, q, k});
      ASSERT_TRUE(factor == 0 || factor == 1 / 0.75);
      dropped += factor == 0 ? 1 : 0;
    }
  }
  // Binomial(160000, 1/4) has standard deviation 173; the stream is fixed, so the test is not
  // flaky.
  EXPECT_NEAR(static_cast<double>(dropped), 40000, 4 * 173);
}

TEST(DropoutMask, NeverAndAlways) {
  EXPECT_EQ(DropoutMask({.probability = 0}).factor({0, 0, 3, 4}), 1);
  EXPECT_EQ(DropoutMask({.probability = 1}).factor({0, 0, 3, 4}), 0);
}

TEST(DropoutMask, EveryCoordinateMatters) {
  const DropoutMask mask({.probability = 0.5F, .seed = 1});
  const DropoutMask other_seed({.probability = 0.5F, .seed = std::uint64_t{1} << 32 | 1});
  int by_batch = 0;
  int by_head = 0;
  int by_query = 0;
  int by_key = 0;
  int by_seed = 0;
  for (std::int32_t k = 0; k < 64; ++k) {
    const double factor = mask.factor({0, 0, 0, k});
    by_batch += factor != mask.factor({1, 0, 0, k}) ? 1 : 0;
    by_head += factor != mask.factor({0, 1, 0, k}) ? 1 : 0;
    by_query += factor != mask.factor({0, 0, 1, k}) ? 1 : 0;
    by_key += factor != mask.factor({0, 0, 0, k + 64}) ? 1 : 0;
    by_seed += factor != other_seed.factor({0, 0, 0, k}) ? 1 : 0;
  }
  for (const int changed : {by_batch, by_head, by_query, by_key, by_seed}) EXPECT_GT(changed, 10);
}

}  // namespace
}  // namespace heed
