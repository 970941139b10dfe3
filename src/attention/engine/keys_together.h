// The keys that a mask leaves of several tiles, computed as those of one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "attention/engine/schedule.h"
#include "attention/kernels/kernels.h"
#include "core/arena.h"

namespace heed { inline namespace v0 { namespace engine {

// The rows of keys and values that a mask leaves of some tiles, copied side by side: rows far apart
// share few places of a cache. Panels that see the same keys share the copies.
template <class Real>
class KeysTogether {
 public:
  // Both are memory for a tile, or null where no tiles are computed as one.
  KeysTogether(Real* key, Real* value) : key_(key), value_(value) {}

  // Makes the copies those of a tile's rows, unless they are, and has the tile read them.
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
  kernels::BasicTile<Real> copied_;  // whose rows they are
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

// What a tile changes of a state beside its output.
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

// So many tiles of keys in steps, after some others, of which `first` is the first.
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
