// A tile of keys and values as a cache stores them, in the form that the decode kernels read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "attention/kernels/kernels.h"
#include "heed/attention/kv_storage.h"
#include "heed/core/data_type.h"

namespace heed { inline namespace v0 { namespace kernels {

// The number of positions of a group, for every instruction set. Caches store groups.
inline constexpr std::int32_t kGroupKeys = 16;

// The number of dimensions that share a scale in int4.
inline constexpr std::int32_t kScaleDims = 32;

// The number of positions, or dimensions, that are neighbours in memory where they are quantised.
inline constexpr std::int32_t kQuad = 4;

// The unit to which dimensions of rows of int8 are rounded up: those of a vector of quads.
inline constexpr std::int32_t kQuadColumns = 16;

// The properties of a storage. Quantised numbers are integers from −most to most, stored unsigned
// as number + offset, times a scale.
struct StorageTraits {
  const char* name;
  std::int32_t bits;  // of a number
  std::int32_t most = 0;
  std::int32_t offset = 0;
  bool scales_blocks = false;  // kScaleDims dimensions share a scale; otherwise all of a row do
  bool is_rotated = false;     // rows are rotated, in blocks that begin at multiples of kScaleDims

  constexpr bool is_quantised() const { return most > 0; }
};

// In the order of KvStorage.
inline constexpr StorageTraits kStorageTraits[] = {
    {.name = "float32", .bits = 32},
    {.name = "float16", .bits = 16},
    {.name = "bfloat16", .bits = 16},
    {.name = "int8", .bits = 8, .most = 127, .offset = 128},
    {.name = "int4", .bits = 4, .most = 7, .offset = 8, .scales_blocks = true, .is_rotated = true},
};
static_assert(std::size(kStorageTraits) == kKvStorages.size());

constexpr const StorageTraits& traits_of(KvStorage storage) {
  return kStorageTraits[static_cast<std::size_t>(storage)];
}

constexpr bool is_quantised(KvStorage storage) { return traits_of(storage).is_quantised(); }

// Calls use(T()) with the type of the numbers of a storage that is not quantised, and nothing for
// others.
template <class Use>
void with_number(KvStorage storage, const Use& use) {
  switch (storage) {
    case KvStorage::kFloat32:
      return use(float{});
    case KvStorage::kFloat16:
      return use(Float16{});
    case KvStorage::kBFloat16:
      return use(BFloat16{});
    default:
      break;
  }
}

// The number of bytes of a position of `dim` numbers; real_bytes is the size of those of
// KvStorage::kFloat32, which may stand for doubles.
constexpr std::int64_t row_bytes(KvStorage storage, bool is_columns, std::int64_t dim,
                                 std::int64_t real_bytes = sizeof(float)) {
  const StorageTraits& traits = traits_of(storage);
  const auto rounded_up = [dim](std::int64_t unit) { return (dim + unit - 1) / unit * unit; };
  if (!traits.is_quantised()) return dim * (traits.bits == 32 ? real_bytes : traits.bits / 8);
  if (traits.scales_blocks) return rounded_up(kScaleDims) * traits.bits / 8;
  return rounded_up(is_columns ? kQuad : kQuadColumns);
}

// The keys or the values of a tile, in groups: group g has the positions from first_key + 16 g on.
//
// In rows, as all values and the keys of tensors are: position j of a group is at j · row_stride
// bytes. In columns, as the keys of a cache are: element [d][j] of [dim][16].
//
// int8 and int4 are integers times a scale. They are stored unsigned, as number + offset,
// in quads: the four neighbours in the dimension that products sum over, which is dimensions for
// keys and positions for values, are neighbours in memory. row_stride is the number of bytes of a
// position.
//   int8, columns: byte [d / 4][j][d % 4], dim rounded up to a multiple of 4; scales[g] is [16].
//         rows:    byte [j / 4][d][j % 4], dim rounded up to a multiple of 16; scales[g] is [16].
//   int4, columns: byte [d / 8][j][d % 4] has in its low half dimension d, where d % 8 < 4, and in
//                  its high half d + 4; scales[g] is [dim / 32][16].
//         rows:    byte [j / 4][d / 32][d % 16][j % 4] has in its low half dimension d, where
//                  d % 32 < 16, and in its high half d + 16; scales[g] is [dim / 32][16].
//         dim is rounded up to a multiple of 32; the dimensions beyond it are stored as 0.
struct StoredNumbers {
  KvStorage storage = KvStorage::kFloat32;
  bool is_columns = false;
  std::int64_t row_stride = 0;  // in bytes
  std::array<const std::byte*, kTileKeys / kGroupKeys> groups;
  std::array<const float*, kTileKeys / kGroupKeys> scales;  // of quantised numbers

  bool is_quantised() const { return kernels::is_quantised(storage); }
};

// All memory of a group must be readable, even if num_keys ends within it.
struct StoredTile {
  StoredNumbers key;
  StoredNumbers value;
  std::int32_t first_key = 0;  // the place of the first position in the sequence
  std::int32_t num_keys = 0;
};

}}}  // namespace heed::v0::kernels
