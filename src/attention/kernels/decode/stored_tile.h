// A tile of keys and values as a cache stores them, which the kernel of few rows reads as they are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/kernels.h"
#include "heed/attention/kv_storage.h"

namespace heed { inline namespace v0 { namespace kernels {

// Positions are stored in groups of this many, whatever the instruction set.
inline constexpr std::int32_t kGroupKeys = 16;

// Dimensions that share a scale in int4.
inline constexpr std::int32_t kScaleDims = 32;

// Positions, or dimensions, whose numbers lie side by side where they are quantised.
inline constexpr std::int32_t kQuad = 4;

// Dimensions that rows of int8 are counted up to a multiple of: those of a vector of quads.
inline constexpr std::int32_t kQuadColumns = 16;

inline bool is_quantised(KvStorage storage) {
  return storage == KvStorage::kInt8 || storage == KvStorage::kInt4;
}

// What is added to quantised numbers so that they are stored without a sign.
constexpr std::int32_t stored_offset(KvStorage storage) {
  return storage == KvStorage::kInt4 ? 8 : 128;
}

// Bytes of a position of `dim` quantised numbers.
inline std::int64_t quantised_row_bytes(KvStorage storage, bool is_columns, std::int64_t dim) {
  const auto rounded_up = [dim](std::int64_t unit) { return (dim + unit - 1) / unit * unit; };
  if (storage == KvStorage::kInt4) return rounded_up(kScaleDims) / 2;
  return rounded_up(is_columns ? kQuad : kQuadColumns);
}

// The keys or the values of a tile, group by group: group g holds the positions first_key + 16 g …
//
// As rows, values always and keys of tensors: position j of a group is at j · row_stride bytes.
// As columns, keys of a cache: element [d][j] of [dim][16].
//
// int8 and int4 are whole numbers times a scale. They are stored without a sign, as number +
// stored_offset(), in quads: four neighbours of what a product sums over, dimensions of keys and
// positions of values, lie side by side. row_stride is how many bytes a position has.
//   int8, columns: byte [d / 4][j][d % 4], dim counted up to a multiple of 4; scales[g] is [16].
//         rows:    byte [j / 4][d][j % 4], dim counted up to a multiple of 16; scales[g] is [16].
//   int4, columns: byte [d / 8][j][d % 4] has in its low half dimension d, where d % 8 < 4, and in
//                  its high half d + 4; scales[g] is [dim / 32][16].
//         rows:    byte [j / 4][d / 32][d % 16][j % 4] has in its low half dimension d, where
//                  d % 32 < 16, and in its high half d + 16; scales[g] is [dim / 32][16].
//         dim is counted up to a multiple of 32, and what exceeds it stored as 0.
struct StoredNumbers {
  KvStorage storage = KvStorage::kFloat32;
  bool is_columns = false;
  std::int64_t row_stride = 0;  // in bytes
  std::array<const std::byte*, kTileKeys / kGroupKeys> groups;
  std::array<const float*, kTileKeys / kGroupKeys> scales;  // where they are quantised

  bool is_quantised() const { return kernels::is_quantised(storage); }
};

// All memory of a group may be read, also where num_keys ends within it.
struct StoredTile {
  StoredNumbers key;
  StoredNumbers value;
  std::int32_t first_key = 0;  // where the first position stands in the sequence
  std::int32_t num_keys = 0;
};

}}}  // namespace heed::v0::kernels
