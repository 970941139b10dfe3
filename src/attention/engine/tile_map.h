// The tiles of keys that rows visit, and the loop over them, which every pass over keys uses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/kernels/kernels.h"
#include "attention/masks/bound_mask.h"
#include "heed/attention/mask.h"
#include "heed/core/cancellation.h"

namespace heed { inline namespace v0 { namespace engine {

// Consecutive tiles that are visited with or without a mask: the keys begin ≤ k < end, where begin
// is a multiple of kTileKeys.
struct TileRun {
  std::int32_t begin;
  std::int32_t end;
  bool has_mask;  // irregular parts of the mask may hide or add to some of these scores
};

// The tiles that some rows visit, computed once for these rows: tiles of which no row sees a key
// are left out. The keys that a row sees within a tile depend on its range and on the irregular
// parts.
class TileMap {
 public:
  // The largest number of runs.
  static std::int64_t capacity(bool has_irregular_mask, std::int64_t kv_len) {
    return has_irregular_mask ? (kv_len + kernels::kTileKeys - 1) / kernels::kTileKeys : 1;
  }

  TileMap() = default;
  // `runs` has room for capacity() of them, and for at least one.
  explicit TileMap(TileRun* runs) : runs_(runs) {}

  // Finds the tiles with some of these keys, which contain the ranges of all rows.
  void find(const BoundMask& mask, const detail::RowGroup& rows, RowRange keys);

  // The first key ≥ `key` that begins a tile to visit, or kNone.
  static constexpr std::int64_t kNone = std::int64_t{1} << 40;
  std::int64_t next(std::int64_t key) const {
    const TileRun* run = run_at(key);
    if (run == runs_ + count_) return kNone;
    return key > run->begin ? key : run->begin;
  }

  std::span<const TileRun> runs() const { return {runs_, static_cast<std::size_t>(count_)}; }
  bool visits(std::int64_t key) const { return next(key) == key; }
  // True if the tile to visit that begins with `key` is the last one.
  bool ends_with(std::int64_t key) const { return next(key + kernels::kTileKeys) == kNone; }
  // The has_mask of the run of a tile to visit that begins with `key`.
  bool has_mask(std::int64_t key) const { return run_at(key)->has_mask; }

 private:
  // The first run that ends after the beginning of this tile.
  const TileRun* run_at(std::int64_t key) const;

  TileRun* runs_ = nullptr;
  std::int64_t count_ = 0;
};

// Calls visit(keys of a tile) for the tiles within `keys` that any of the visitors visits, in the
// order of keys, and checks for cancellation between them. A visitor has rows().tiles(), its
// TileMap. `keys` begins at a tile, and ends at one or at the last key.
template <class Visitor, class Visit>
void walk_tiles(std::span<Visitor> visitors, RowRange keys, const Visit& visit) {
  const auto next = [&](std::int64_t key) {
    std::int64_t first = TileMap::kNone;
    for (const auto& visitor : visitors) {
      first = std::min(first, visitor.rows().tiles().next(key));
    }
    return first;
  };
  for (std::int64_t key = next(keys.begin); key < keys.end; key = next(key + kernels::kTileKeys)) {
    check_cancelled();
    visit(RowRange{key, std::min<std::int64_t>(key + kernels::kTileKeys, keys.end)});
  }
}

}}}  // namespace heed::v0::engine
