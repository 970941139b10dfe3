// The products of a panel with a tile of keys in the tiles of AMX. Both have what is summed over in
// the rows of the first operand as it lies in memory: keys as they are, values turned, so that
// scores, weights and sums are those of the other kernels, a row of attention a lane.
#if defined(HEED_TILE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TILE_PRODUCTS_INL_H_
#undef HEED_TILE_PRODUCTS_INL_H_
#else
#define HEED_TILE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "attention/kernels/panel-inl.h"
#include "attention/kernels/tiles-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// Registers: sums of two blocks of rows for each vector of a panel, and the operands.
constexpr int kSecondSums = kPanelVectors;
constexpr int kTileA = 2 * kPanelVectors;
constexpr int kTileB = kTileA + 1;

template <int kTile, int kCount>
HWY_INLINE void zero_tiles() {
  if constexpr (kCount > 0) {
    tile_zero<kTile>();
    zero_tiles<kTile + 1, kCount - 1>();
  }
}
// A register for each vector of rows of so many floats.
template <int kTile, int kCount>
HWY_INLINE void load_tiles(const Real* rows, std::int64_t stride) {
  if constexpr (kCount > 0) {
    tile_load<kTile>(rows, stride);
    load_tiles<kTile + 1, kCount - 1>(rows + kLanes, stride);
  }
}
template <int kTile, int kCount>
HWY_INLINE void store_tiles(Real* rows, std::int64_t stride) {
  if constexpr (kCount > 0) {
    tile_store<kTile>(rows, stride);
    store_tiles<kTile + 1, kCount - 1>(rows + kLanes, stride);
  }
}
// Adds the products of kTileA and kCount vectors of b to the sums from kTile on.
template <int kTile, int kCount>
HWY_INLINE void multiply_tiles(const Real* b, std::int64_t stride) {
  if constexpr (kCount > 0) {
    tile_load<kTileB>(b, stride);
    tile_multiply<kTile, kTileA, kTileB>();
    multiply_tiles<kTile + 1, kCount - 1>(b + kLanes, stride);
  }
}

// kTileRows keys of a tile from one on: the tile's memory, or a copy filled up with 0.
class TileKeys {
 public:
  HWY_INLINE TileKeys(const Tile& tile, std::int32_t first, std::int32_t num_pairs)
      : data_(tile.key + first * tile.key_stride), stride_(tile.key_stride) {
    const std::int32_t count = tile.num_keys - first;
    if (HWY_LIKELY(count >= kTileRows)) return;
    for (std::int32_t i = 0; i < kTileRows; ++i) {
      Real* const row = copy_ + i * num_pairs;
      const std::size_t bytes = static_cast<std::size_t>(num_pairs) * sizeof(Real);
      if (i < count) {
        std::memcpy(row, static_cast<const void*>(data_ + i * stride_), bytes);
      } else {
        std::memset(row, 0, bytes);
      }
    }
    data_ = copy_;
    stride_ = num_pairs;
  }

  HWY_INLINE void load(std::int32_t pair) const { tile_load<kTileA>(data_ + pair, stride_); }

 private:
  const Real* data_;
  std::int64_t stride_;
  alignas(64) Real copy_[kTileRows * kMostTileDims / 2];
};

// Scores of the keys of a segment, whose begin is a multiple of kKeysTogether from that of the
// tile. Of so many keys the products are begun before those before them are finished: tiles and
// vectors work side by side.
template <int kVectors, class Use>
struct TileScores {
  const PanelKernel<kVectors>& kernel;
  Use& use;

  template <int kFirst, int kCount>
  HWY_INLINE void run(const Segment& segment) const {
    const auto end_of = [&](std::int32_t key)
                            HWY_ATTR { return std::min(key + kKeysTogether, segment.end); };
    multiply<kFirst, kCount>(segment.begin, end_of(segment.begin));
    for (std::int32_t key = segment.begin; key < segment.end; key += kKeysTogether) {
      const std::int32_t next = key + kKeysTogether;
      if (next < segment.end) multiply<kFirst, kCount>(next, end_of(next));
      finish<kFirst, kCount>(key, end_of(key));
    }
  }

 private:
  template <int kFirst, int kCount>
  HWY_INLINE void multiply(std::int32_t key, std::int32_t end) const {
    constexpr int kWidth = PanelKernel<kVectors>::kWidth;
    const std::int32_t num_pairs = kernel.panel.head_dim / 2;
    const bool has_second = end - key > kTileRows;
    const TileKeys first(kernel.tile, key, num_pairs);
    const TileKeys second(kernel.tile, has_second ? key + kTileRows : key, num_pairs);
    zero_tiles<0, kCount>();
    zero_tiles<kSecondSums, kCount>();
    for (std::int32_t pair = 0; pair < num_pairs; pair += kTilePairs) {
      const Real* const query = kernel.panel.query + pair * kWidth + kFirst * kLanes;
      first.load(pair);
      multiply_tiles<0, kCount>(query, kWidth);
      if (!has_second) continue;
      second.load(pair);
      multiply_tiles<kSecondSums, kCount>(query, kWidth);
    }
    Real* const scores = kernel.weights + key * kWidth + kFirst * kLanes;
    store_tiles<0, kCount>(scores, kWidth);
    if (has_second) store_tiles<kSecondSums, kCount>(scores + kTileRows * kWidth, kWidth);
  }

  template <int kFirst, int kCount>
  HWY_INLINE void finish(std::int32_t key, std::int32_t end) const {
    if constexpr (Use::kMakesPairs) {
      if (kernel.is_mixed) {
        finish_pairs<true, kFirst, kCount>(key, end);
      } else {
        finish_pairs<false, kFirst, kCount>(key, end);
      }
    } else if constexpr (Use::kFinishes) {
      kernel.template finish<kFirst, kCount>(key, end, use);
    }
  }

  template <bool kMixed, int kFirst, int kCount>
  HWY_INLINE void finish_pairs(std::int32_t key, std::int32_t end) const {
    for (; key < end; key += 2) {
      Real* const row = kernel.weights + key * kernel.kWidth;
      Real* const pairs = kernel.weights + key / 2 * kernel.kWidth;
      for (int v = kFirst; v < kFirst + kCount; ++v) {
        const Vec first = use.template finish<kMixed>(v, key, kernel.load(row, v));
        Vec second = hn::Zero(kReals);
        if (HWY_LIKELY(key + 1 < end)) {
          second = use.template finish<kMixed>(v, key + 1, kernel.load(row + kernel.kWidth, v));
        }
        kernel.store(pair_of(first, second), pairs, v);
      }
    }
  }
};

template <int kVectors, class Use>
HWY_INLINE void score_in_tiles(const PanelKernel<kVectors>& kernel, Use& use) {
  for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
    with_vectors<kVectors>(kernel.segments[i], TileScores<kVectors, Use>{kernel, use});
  }
}

// What the keys of a segment add to two blocks of columns, whose sums are in the registers.
template <int kVectors>
struct TileColumns {
  const typename PanelKernel<kVectors>::OverKeys& operands;
  std::int32_t column;

  template <int kFirst, int kCount>
  HWY_INLINE void run(const Segment& segment) const {
    constexpr int kWidth = PanelKernel<kVectors>::kWidth;
    const Real* const values = operands.values + column * operands.stride;
    for (std::int32_t pair = segment.begin / 2; 2 * pair < segment.end; pair += kTilePairs) {
      const Real* const weights = operands.weights + pair * kWidth + kFirst * kLanes;
      tile_load<kTileA>(values + pair, operands.stride);
      multiply_tiles<kFirst, kCount>(weights, kWidth);
      tile_load<kTileA>(values + kTileRows * operands.stride + pair, operands.stride);
      multiply_tiles<kSecondSums + kFirst, kCount>(weights, kWidth);
    }
  }
};

// The same without tiles and without weights that are kUnseen, to the sums in memory.
template <int kVectors>
struct GuardedColumns {
  const typename PanelKernel<kVectors>::OverKeys& operands;
  std::int32_t column;
  Real* sums;

  template <int kFirst, int kCount>
  HWY_INLINE void run(const Segment& segment) const {
    constexpr int kWidth = PanelKernel<kVectors>::kWidth;
    for (std::int32_t i = 0; i < 2 * kTileRows; ++i) {
      const Real* const values = operands.values + (column + i) * operands.stride;
      for (int v = kFirst; v < kFirst + kCount; ++v) {
        Real* const at = sums + (column + i) * kWidth + v * kLanes;
        Vec sum = hn::Load(kReals, at);
        for (std::int32_t pair = segment.begin / 2; 2 * pair < segment.end; pair += kTilePairs) {
          const Real* const weights = operands.weights + pair * kWidth + v * kLanes;
          sum = add_tile_row<true>(values + pair, weights, kWidth, sum);
        }
        hn::Store(sum, kReals, at);
      }
    }
  }
};

// Adds what all keys add to two blocks of columns.
template <int kVectors>
HWY_INLINE void add_columns(const PanelKernel<kVectors>& kernel,
                            const typename PanelKernel<kVectors>::OverKeys& operands,
                            std::int32_t column, Real* sums) {
  constexpr int kWidth = PanelKernel<kVectors>::kWidth;
  Real* const first = sums + column * kWidth;
  Real* const second = first + kTileRows * kWidth;
  load_tiles<0, kVectors>(first, kWidth);
  load_tiles<kSecondSums, kVectors>(second, kWidth);
  for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
    with_vectors<kVectors>(kernel.segments[i], TileColumns<kVectors>{operands, column});
  }
  store_tiles<0, kVectors>(first, kWidth);
  store_tiles<kSecondSums, kVectors>(second, kWidth);
}

// Columns are a multiple of two blocks.
template <bool kGuarded, int kVectors>
HWY_INLINE void add_values_in_tiles(const PanelKernel<kVectors>& kernel,
                                    const typename PanelKernel<kVectors>::OverKeys& operands,
                                    std::int32_t columns, Real* sums) {
  for (std::int32_t column = 0; column < columns; column += 2 * kTileRows) {
    if (!kGuarded) {
      add_columns(kernel, operands, column, sums);
      continue;
    }
    for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
      with_vectors<kVectors>(kernel.segments[i], GuardedColumns<kVectors>{operands, column, sums});
    }
  }
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TILE_PRODUCTS_INL_H_
