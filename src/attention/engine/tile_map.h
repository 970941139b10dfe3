// Which tiles of keys some rows visit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/kernels/kernels.h"
#include "attention/masks/bound_mask.h"

namespace heed { inline namespace v0 { namespace engine {

// Neighbouring tiles that are visited alike: the keys begin ≤ k < end, where begin is a multiple of
// kTileKeys.
struct TileRun {
  std::int32_t begin;
  std::int32_t end;
  bool has_mask;  // irregular parts of the mask may hide or add to some of these scores
};

// The tiles that some rows visit, found once for these rows: those of which no row sees a key are
// left out. What each row sees of a tile is the matter of its range and of the irregular parts.
class TileMap {
 public:
  // How many runs there may be at most.
  static std::int64_t capacity(bool has_irregular_mask, std::int64_t kv_len) {
    return has_irregular_mask ? (kv_len + kernels::kTileKeys - 1) / kernels::kTileKeys : 1;
  }

  TileMap() = default;
  // `runs` is memory for capacity() of them, at least one.
  explicit TileMap(TileRun* runs) : runs_(runs) {}

  // Finds the tiles with some of these keys, all that the rows' ranges leave.
  void find(const BoundMask& mask, const detail::RowGroup& rows, RowRange keys);

  // The first key from `key` on that begins a tile to visit; kNone where there is none.
  static constexpr std::int64_t kNone = std::int64_t{1} << 40;
  std::int64_t next(std::int64_t key) const {
    const TileRun* run = run_at(key);
    if (run == runs_ + count_) return kNone;
    return key > run->begin ? key : run->begin;
  }

  std::span<const TileRun> runs() const { return {runs_, static_cast<std::size_t>(count_)}; }
  bool visits(std::int64_t key) const { return next(key) == key; }
  // Of a tile to visit, by its first key: whether it is the last one.
  bool ends_with(std::int64_t key) const { return next(key + kernels::kTileKeys) == kNone; }
  // Of such a tile.
  bool has_mask(std::int64_t key) const { return run_at(key)->has_mask; }

 private:
  // The first run that does not end before this tile.
  const TileRun* run_at(std::int64_t key) const;

  TileRun* runs_ = nullptr;
  std::int64_t count_ = 0;
};

}}}  // namespace heed::v0::engine
