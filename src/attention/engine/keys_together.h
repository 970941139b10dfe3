// The keys that a mask leaves of several tiles, computed like those of one tile.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "attention/engine/schedule.h"
#include "attention/kernels/kernels.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace engine {

// Copies of the rows of keys and values that a mask leaves of some tiles, side by side, as rows far
// apart use few cache sets. Panels that see the same keys share the copies.
template <class Real>
class KeysTogether {
 public:
  // Both have room for a tile, or are null where tiles are not joined.
  KeysTogether(Real* key, Real* value) : key_(key), value_(value) {}

  // Copies the rows of a tile, unless they have been copied before, and makes the tile point to the
  // copies.
  void put(kernels::BasicTile<Real>& tile, std::int32_t head_dim, std::int32_t value_dim) {
    if (tile.key != copied_.key || tile.value != copied_.value ||
        tile.key_stride != copied_.key_stride || tile.num_keys > copied_.num_keys) {
      copied_ = tile;
      copy(tile.key, tile.key_stride, tile.num_keys, head_dim, key_);
      copy(tile.value, tile.value_stride, tile.num_keys, value_dim, value_);
    }
    tile.key = key_;
    tile.key_stride = head_dim;
    tile.value = value_;
    tile.value_stride = value_dim;
  }

 private:
  static void copy(const Real* rows, std::int64_t stride, std::int32_t count, std::int32_t dim,
                   Real* target) {
    for (std::int64_t j = 0; j < count; ++j) std::copy_n(rows + j * stride, dim, target + j * dim);
  }

  Real* key_;
  Real* value_;
  kernels::BasicTile<Real> copied_;  // the tile whose rows are copied
};

template <class Real>
struct KeysTogetherMemory {
  Piece<Real> key;
  Piece<Real> value;

  KeysTogetherMemory() = default;
  KeysTogetherMemory(const Schedule<Real>& schedule, Layout& layout)
      : key(layout.add<Real>(schedule.joins_tiles() ? schedule.tile_keys() * schedule.head_dim
                                                    : 0)),
        value(layout.add<Real>(schedule.joins_tiles() ? schedule.tile_keys() * schedule.value_dim
                                                      : 0)) {}
  KeysTogether<Real> in(std::byte* memory) const { return {key.in(memory), value.in(memory)}; }
};

// The members of a state, apart from its output, that a tile changes.
template <class Real>
class OffsetsAndSums {
 public:
  OffsetsAndSums(const kernels::BasicPanelState<Real>& state, std::int32_t width) {
    std::copy_n(state.minus_m, width, minus_m_.begin());
    std::copy_n(state.threshold, width, threshold_.begin());
    std::copy_n(state.sum, width, sum_.begin());
  }
  void put_into(const kernels::BasicPanelState<Real>& state, std::int32_t width) const {
    std::copy_n(minus_m_.begin(), width, state.minus_m);
    std::copy_n(threshold_.begin(), width, state.threshold);
    std::copy_n(sum_.begin(), width, state.sum);
  }

 private:
  std::array<Real, kernels::kMaxPanelWidth> minus_m_;
  std::array<Real, kernels::kMaxPanelWidth> threshold_;
  std::array<Real, kernels::kMaxPanelWidth> sum_;
};

// The next `count` tiles of keys in steps after `others` tiles, the first of which is `first`.
template <class Real>
kernels::BasicTile<Real> tiles_after(const kernels::BasicTile<Real>& first, std::size_t others,
                                     std::size_t count) {
  kernels::BasicTile<Real> tile = first;
  const std::int64_t keys = static_cast<std::int64_t>(others) * first.num_keys;
  tile.key += keys * first.key_stride;
  tile.value += keys * first.value_stride;
  tile.num_keys *= static_cast<std::int32_t>(count);
  tile.fetched = {};
  return tile;
}

}}}  // namespace heed::v0::engine
