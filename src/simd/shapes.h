// Sizes that register blocks and the panels of attention share.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace kernels {

// The largest number of vectors of a panel, and of rows, with sixteen floats in a vector.
inline constexpr std::int32_t kPanelVectors = 3;
inline constexpr std::int32_t kMaxPanelWidth = kPanelVectors * 16;

// The steps that one sum of a product of matrices covers; the sums of consecutive steps are added
// up. For 1536 steps, this has a quarter of the error of a single sum.
inline constexpr std::int64_t kSummedSteps = 64;

// The number of keys whose products an AMX tile adds to each other before it adds them to a sum,
// and the largest number of dimensions that are multiplied in AMX tiles.
inline constexpr std::int32_t kTileKeysTogether = 32;
inline constexpr std::int32_t kMostTileDims = 256;

// The mark for the weight of a key that is not seen, where values are guarded.
inline constexpr float kUnseen = -1.0F;

}}}  // namespace heed::v0::kernels
