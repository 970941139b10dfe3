// What the kernels do to a tile of scores between the two products.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/kernels/kernels.h"
#include "support/fused.h"

namespace heed {
namespace {

class ScoreKernels : public testing_support::TargetTest {
 protected:
  // A tile of one vector of rows; nothing but scores is looked at.
  static kernels::ScoreTile tile_of(float* scores, std::int32_t num_keys) {
    kernels::ScoreTile tile{};
    tile.scores = scores;
    tile.width = tile.num_rows = table().lanes;
    tile.end = num_keys;
    return tile;
  }
};
HEED_RUN_ON_EVERY_TARGET(ScoreKernels);

// With a softcap of 1 it is tanh.
TEST_P(ScoreKernels, CapWithinFourUnitsInTheLastPlace) {
  constexpr std::int32_t kKeys = 128;
  const std::int32_t width = table().lanes;
  const std::int32_t cells = kKeys * width;
  alignas(64) float scores[kKeys * 16];
  for (float scale = 0x1p-40F; scale < 32; scale *= 1.07F) {
    std::vector<float> given;
    given.reserve(static_cast<std::size_t>(cells));
    for (std::int32_t i = 0; i < cells; ++i) {
      const float x = scale * (1 + static_cast<float>(i) / static_cast<float>(cells));
      given.push_back(i % 2 == 0 ? x : -x);
      scores[i] = given.back();
    }
    table().cap(tile_of(scores, kKeys), 1);
    for (std::size_t i = 0; i < given.size(); ++i) {
      const double exact = std::tanh(static_cast<double>(given[i]));
      const auto rounded = std::abs(static_cast<float>(exact));
      const double unit = std::nextafter(rounded, 2.0F) - rounded;
      ASSERT_LE(std::abs(scores[i] - exact), 4 * unit) << given[i];
      ASSERT_LE(std::abs(scores[i]), 1) << given[i];
    }
  }
}

TEST_P(ScoreKernels, CapKeepsNaNAndBoundsInfinity) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  alignas(64) float scores[16] = {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  table().cap(tile_of(scores, 1), 3);
  EXPECT_EQ(scores[0], 3);
  EXPECT_EQ(scores[1], -3);
  EXPECT_TRUE(std::isnan(scores[2]));
}

// What a mask hides altogether is never multiplied.
TEST_P(ScoreKernels, SayWhatAMaskLetsThrough) {
  constexpr float kHidden = -std::numeric_limits<float>::infinity();
  const std::int32_t width = table().lanes;
  alignas(64) float mask[3 * 16] = {};
  const kernels::ScoreTile tile = tile_of(mask, 3);
  EXPECT_EQ(table().visibility(tile), kernels::Visibility::kAll);
  mask[width + 1] = 0.5F;
  EXPECT_EQ(table().visibility(tile), kernels::Visibility::kMixed);
  for (std::int32_t i = 0; i < 3 * width; ++i) mask[i] = kHidden;
  EXPECT_EQ(table().visibility(tile), kernels::Visibility::kNone);
  mask[2 * width] = 0;
  EXPECT_EQ(table().visibility(tile), kernels::Visibility::kMixed);
}

}  // namespace
}  // namespace heed
