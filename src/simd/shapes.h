// Sizes that register blocks and the panels of attention share.
#pragma once

#include <cstdint>

namespace heed { inline namespace v0 { namespace kernels {

// The most vectors of rows in a panel, and the most rows: of sixteen floats a vector.
inline constexpr std::int32_t kPanelVectors = 3;
inline constexpr std::int32_t kMaxPanelWidth = kPanelVectors * 16;

// Keys whose products an AMX tile adds to each other before it adds them to a sum, and the most
// dimensions of what is multiplied in AMX tiles.
inline constexpr std::int32_t kTileKeysTogether = 32;
inline constexpr std::int32_t kMostTileDims = 256;

// Stands for the weight of a key that is not seen, where values are guarded.
inline constexpr float kUnseen = -1.0F;

}}}  // namespace heed::v0::kernels
