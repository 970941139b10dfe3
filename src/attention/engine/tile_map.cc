#include "attention/engine/tile_map.h"

#include <algorithm>

namespace heed { inline namespace v0 { namespace engine {

using kernels::kTileKeys;

void TileMap::find(const BoundMask& mask, const detail::RowGroup& rows, RowRange keys) {
  count_ = 0;
  if (keys.begin >= keys.end) return;
  const std::int64_t begin = keys.begin / kTileKeys * kTileKeys;
  if (mask.is_structural()) {
    runs_[count_++] = {static_cast<std::int32_t>(begin), static_cast<std::int32_t>(keys.end),
                       false};
    return;
  }
  for (std::int64_t key = mask.next_key(rows, begin); key < keys.end;
       key = mask.next_key(rows, key + kTileKeys)) {
    const RowRange tile{std::max(key, keys.begin), std::min(key + kTileKeys, keys.end)};
    const auto visibility = mask.visibility(rows, tile);
    if (visibility == kernels::Visibility::kNone) continue;
    const bool has_mask = visibility == kernels::Visibility::kMixed;
    TileRun* last = count_ > 0 ? &runs_[count_ - 1] : nullptr;
    if (last != nullptr && last->end == key && last->has_mask == has_mask) {
      last->end = static_cast<std::int32_t>(tile.end);
    } else {
      runs_[count_++] = {static_cast<std::int32_t>(key), static_cast<std::int32_t>(tile.end),
                         has_mask};
    }
  }
}

const TileRun* TileMap::run_at(std::int64_t key) const {
  if (count_ <= 1) return count_ == 1 && runs_[0].end <= key ? runs_ + 1 : runs_;
  return std::partition_point(runs_, runs_ + count_,
                              [key](const TileRun& run) { return run.end <= key; });
}

}}}  // namespace heed::v0::engine
