#include "heed/attention/fma_rate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>

#include "attention/kernels/kernels.h"
#include "heed/core/error.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(FmaRate, IsARate) {
  const double rate = measure_fma_rate(1e-5);
  EXPECT_GT(rate, 0);
  EXPECT_TRUE(std::isfinite(rate));
}

TEST(FmaRate, ATimeThatIsNoneIsRefused) {
  for (const double seconds : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity()}) {
    EXPECT_THAT([&] { measure_fma_rate(seconds); },
                ThrowsMessage<InvalidArgument>(HasSubstr("expected a positive number")));
  }
}

// The sums converge to 0.999 / (1 − 0.999); a skipped chain would keep its initial value.
TEST(FmaRate, EveryInstructionSetDoesTheWorkItCounts) {
  for (const auto* table : kernels::supported_kernels()) {
    float sink = 0;
    EXPECT_EQ(table->fma_burst(0, &sink), 0) << table->name;
    const std::int64_t operations = table->fma_burst(1, &sink);
    EXPECT_EQ(table->fma_burst(100000, &sink), 100000 * operations) << table->name;
    const std::int64_t chains = operations / (2 * table->lanes);
    EXPECT_NEAR(sink, 999.0 * static_cast<double>(chains), static_cast<double>(chains))
        << table->name;
  }
}

}  // namespace
}  // namespace heed
