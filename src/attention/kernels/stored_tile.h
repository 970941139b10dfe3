// A tile of keys and values as a cache stores them, which the kernel of few rows reads as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/kernels.h"
#include "heed/kv_storage.h"

namespace heed::inline v0::kernels {

// Positions are stored in groups of this many, whatever the instruction set.
inline constexpr std::int32_t kGroupKeys = 16;

// Dimensions that share a scale in int4.
inline constexpr std::int32_t kScaleDims = 32;

// The keys or the values of a tile, group by group: group g holds the positions first_key + 16 g …
//
// As rows, values always and keys of tensors: position j of a group is at j · row_stride bytes.
// As columns, keys of a cache: element [d][j] of [dim][16].
//
// int8: one byte a number, scales[g] is [16]: a number is byte · scale.
// int4: two numbers a byte, each as number + 8, dim counted up to a multiple of 32, what exceeds it
// stored as 0; a number is (nibble − 8) · scale.
//   Columns: byte [d / 2][j] has dimension d in its low and d + 1 in its high half, for even d;
//            scales[g] is [dim / 32][16].
//   Rows:    16 bytes for each 32 dimensions, byte i has dimension i in its low and 16 + i in its
//            high half; scales[g] is [16][dim / 32].
struct StoredNumbers {
  KvStorage storage = KvStorage::kFloat32;
  bool is_columns = false;
  std::int64_t row_stride = 0;  // in bytes
  std::array<const std::byte*, kTileKeys / kGroupKeys> groups{};
  std::array<const float*, kTileKeys / kGroupKeys> scales{};
};

// All memory of a group may be read, also where num_keys ends within it.
struct StoredTile {
  StoredNumbers key;
  StoredNumbers value;
  std::int32_t first_key = 0;  // where the first position stands in the sequence
  std::int32_t num_keys = 0;
};

}  // namespace heed::inline v0::kernels
