// The loop over tiles of keys, which every pass over keys uses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "attention/engine/tile_map.h"
#include "attention/kernels/kernels.h"
#include "heed/attention/mask.h"
#include "heed/core/cancellation.h"

namespace heed { inline namespace v0 { namespace engine {

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
