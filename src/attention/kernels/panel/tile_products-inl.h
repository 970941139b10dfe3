// The products of a panel with a tile of keys in AMX tiles. The rows of the first operand are the
// dimension that is summed over: keys as they are in memory, values (or keys in the backward pass)
// transposed. Scores, weights and sums thus have the layout of the other kernels, with a row of the
// panel in each lane. For sums over rows, the first operand is the numbers of a key.
#if defined(HEED_TILE_PRODUCTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TILE_PRODUCTS_INL_H_
#undef HEED_TILE_PRODUCTS_INL_H_
#else
#define HEED_TILE_PRODUCTS_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "attention/kernels/amx/tiles-inl.h"
#include "attention/kernels/panel/backward.h"
#include "attention/kernels/panel/panel-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The numbers of registers: sums of two blocks of rows for each vector of a panel, and the
// operands.
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
// Loads kCount vectors of each row into one register for each vector.
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
// Adds the products of kTileA and kCount vectors of b to the sums in registers kTile and up.
template <int kTile, int kCount>
HWY_INLINE void multiply_tiles(const Real* b, std::int64_t stride) {
  if constexpr (kCount > 0) {
    tile_load<kTileB>(b, stride);
    tile_multiply<kTile, kTileA, kTileB>();
    multiply_tiles<kTile + 1, kCount - 1>(b + kLanes, stride);
  }
}

// kTileRows keys of a tile from `first` on, in place or, if there are fewer, in a copy padded with
// 0.
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

  HWY_INLINE void load(std::int32_t pair) const { tile_load_once<kTileA>(data_ + pair, stride_); }

 private:
  const Real* data_;
  std::int64_t stride_;
  alignas(64) Real copy_[kTileRows * kMostTileDims / 2];
};

// The scores of the keys of a segment, which begins at a multiple of kKeysTogether. kKeysTogether
// keys are multiplied and then finished, as AMX and vectors do not work at the same time.
template <int kVectors, class Use>
struct TileScores {
  const PanelKernel<kVectors>& kernel;
  Use& use;

  template <int kFirst, int kCount>
  HWY_INLINE void run(const Segment& segment) const {
    for (std::int32_t key = segment.begin; key < segment.end; key += kKeysTogether) {
      const std::int32_t end = std::min(key + kKeysTogether, segment.end);
      multiply<kFirst, kCount>(key, end);
      finish<kFirst, kCount>(key, end);
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
    Real* const scores = scores_of(key) + kFirst * kLanes;
    store_tiles<0, kCount>(scores, kWidth);
    if (has_second) store_tiles<kSecondSums, kCount>(scores + kTileRows * kWidth, kWidth);
  }

  template <int kFirst, int kCount>
  HWY_INLINE void finish(std::int32_t key, std::int32_t end) const {
    if constexpr (Use::kMakesPairs) {
      kernel.template finish_pairs<kFirst, kCount>(scores_of(key), key, end, use);
    } else if constexpr (Use::kFinishes) {
      kernel.template finish<kFirst, kCount>(key, end, use);
    }
  }

  // The place of the scores of a block of keys. If they become pairs at once, it is the same for
  // all blocks where possible, after the pairs, which leaves more of the nearest cache.
  HWY_INLINE Real* scores_of(std::int32_t key) const {
    if (!Use::kMakesPairs) return kernel.weights + key * kernel.kWidth;
    const std::int32_t keys =
        (kernel.tile.num_keys + kKeysTogether - 1) / kKeysTogether * kKeysTogether;
    return kernel.weights + std::min(keys / 2, keys - kKeysTogether) * kernel.kWidth;
  }
};

// Adds the products with the keys of a segment to the sums of a block of columns, which are in
// registers kSums and up.
template <int kVectors, int kSums>
struct TileColumns {
  const typename PanelKernel<kVectors>::OverKeys& operands;
  std::int32_t column;

  template <int kFirst, int kCount>
  HWY_INLINE void run(const Segment& segment) const {
    constexpr int kWidth = PanelKernel<kVectors>::kWidth;
    const Real* const values = operands.values + column * operands.stride;
    for (std::int32_t pair = segment.begin / 2; 2 * pair < segment.end; pair += kTilePairs) {
      const Real* const weights = operands.weights + pair * kWidth + kFirst * kLanes;
      tile_load_once<kTileA>(values + pair, operands.stride);
      multiply_tiles<kSums + kFirst, kCount>(weights, kWidth);
    }
  }
};

// Does the same without AMX, leaving out products as kCounted says, with sums in memory.
template <Counted kCounted, int kVectors>
struct CountedColumns {
  const typename PanelKernel<kVectors>::OverKeys& operands;
  std::int32_t column;
  Real* sums;

  template <int kFirst, int kCount>
  HWY_INLINE void run(const Segment& segment) const {
    constexpr int kWidth = PanelKernel<kVectors>::kWidth;
    for (std::int32_t i = 0; i < kTileRows; ++i) {
      const Real* const values = operands.values + (column + i) * operands.stride;
      for (int v = kFirst; v < kFirst + kCount; ++v) {
        Real* const at = sums + (column + i) * kWidth + v * kLanes;
        Vec sum = hn::Load(kReals, at);
        for (std::int32_t pair = segment.begin / 2; 2 * pair < segment.end; pair += kTilePairs) {
          const Real* const weights = operands.weights + pair * kWidth + v * kLanes;
          sum = add_tile_row<kCounted>(values + pair, weights, kWidth, sum);
        }
        hn::Store(sum, kReals, at);
      }
    }
  }
};

// Adds the products with all keys to a block of columns.
template <int kSums, int kVectors>
HWY_INLINE void add_columns(const PanelKernel<kVectors>& kernel,
                            const typename PanelKernel<kVectors>::OverKeys& operands,
                            std::int32_t column, const Real* sums) {
  load_tiles<kSums, kVectors>(sums, kernel.kWidth);
  for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
    with_vectors<kVectors>(kernel.segments[i], TileColumns<kVectors, kSums>{operands, column});
  }
}

// The number of columns is a multiple of two blocks. The sums of one block are stored after the
// next has been multiplied: a load after a store waits for it if the last twelve bits of their
// addresses are equal (Intel's optimization manual: 4-KByte aliasing), and a store waits for its
// products.
template <int kVectors>
HWY_INLINE void add_values_in_tiles(const PanelKernel<kVectors>& kernel,
                                    const typename PanelKernel<kVectors>::OverKeys& operands,
                                    std::int32_t columns, Real* sums) {
  constexpr int kWidth = PanelKernel<kVectors>::kWidth;
  constexpr int kBlockSize = kTileRows * kWidth;
  for (std::int32_t column = 0; column < columns; column += 2 * kTileRows) {
    Real* const block = sums + column * kWidth;
    add_columns<0>(kernel, operands, column, block);
    if (column > 0) store_tiles<kSecondSums, kVectors>(block - kBlockSize, kWidth);
    add_columns<kSecondSums>(kernel, operands, column + kTileRows, block + kBlockSize);
    store_tiles<0, kVectors>(block, kWidth);
  }
  store_tiles<kSecondSums, kVectors>(sums + columns * kWidth - kBlockSize, kWidth);
}

template <Counted kCounted, int kVectors>
HWY_INLINE void add_counted_values(const PanelKernel<kVectors>& kernel,
                                   const typename PanelKernel<kVectors>::OverKeys& operands,
                                   std::int32_t columns, Real* sums) {
  for (std::int32_t column = 0; column < columns; column += kTileRows) {
    const CountedColumns<kCounted, kVectors> add{operands, column, sums};
    for (std::int32_t i = 0; i < kernel.num_segments; ++i) {
      with_vectors<kVectors>(kernel.segments[i], add);
    }
  }
}

// Sums over the rows of a panel for keys. The numbers of a key are in pairs of neighbouring rows,
// padded with 0 to whole registers; rows are in pairs too, as in RowVectors.
template <int kVectors>
struct TileRowSums {
  static constexpr int kRowPairs = kVectors * kLanes / 2;
  static constexpr int kRowElements = (kRowPairs + kTilePairs - 1) / kTilePairs * kTilePairs;

  // pairs[key][kRowElements] = the numbers of a key times `scale`; 0 for rows that do not see it,
  // and for keys that pad the last block.
  static HWY_INLINE void pair_numbers(const PanelKernel<kVectors>& kernel, Real scale,
                                      Real* pairs) {
    const Vec factor = hn::Set(kReals, scale);
    const Segment& first = kernel.segments[0];
    const std::int32_t seen_end = first.num_vectors == kVectors ? first.end : kernel.begin;
    for (std::int32_t key = kernel.begin; key < kernel.end || key % kTileRows != 0; ++key) {
      const bool is_written = key >= first.begin && key < seen_end;
      Real* const row = pairs + key * kRowElements;
      std::fill(row + (is_written ? kRowPairs : 0), row + kRowElements, Real{0});
    }
    kernel.visit([&](int v, std::int32_t key, const Real* at) HWY_ATTR {
      store_neighbours<First::kLower>(hn::Mul(hn::Load(kReals, at), factor),
                                      pairs + key * kRowElements + v * kLanes / 2);
    });
  }

  // Computes kTileRows keys and kColumns vectors of every row.
  template <int kColumns>
  static HWY_INLINE void add_to_block(const Real* numbers, const Real* rows, Real* sums,
                                      std::int64_t stride) {
    constexpr int kRowSize = kColumns * kLanes;
    load_tiles<0, kColumns>(sums, stride);
    for (int pair = 0; pair < kRowElements; pair += kTilePairs) {
      tile_load<kTileA>(numbers + pair, kRowElements);
      multiply_tiles<0, kColumns>(rows + pair * kRowSize, kRowSize);
    }
    store_tiles<0, kColumns>(sums, stride);
  }

  // Does so for fewer keys, in a copy of their sums.
  template <int kColumns>
  static HWY_INLINE void add_to_some(const Real* numbers, const Real* rows, const KeySums& sums,
                                     std::int32_t count) {
    constexpr int kRowSize = kColumns * kLanes;
    HWY_ALIGN Real copy[kTileRows * kRowSize] = {};
    for (std::int32_t key = 0; key < count; ++key) {
      std::copy_n(sums.data + key * sums.stride, kRowSize, copy + key * kRowSize);
    }
    add_to_block<kColumns>(numbers, rows, copy, kRowSize);
    for (std::int32_t key = 0; key < count; ++key) {
      std::copy_n(copy + key * kRowSize, kRowSize, sums.data + key * sums.stride);
    }
  }

  // Does so for one key without AMX, leaving out numbers that are 0.
  template <int kColumns>
  static HWY_INLINE void add_guarded(const Real* numbers, const Real* rows, Real* sums) {
    constexpr int kRowSize = kColumns * kLanes;
    for (int c = 0; c < kColumns; ++c, sums += kLanes, rows += kLanes) {
      Vec sum = hn::LoadU(kReals, sums);
      for (int pair = 0; pair < kRowElements; pair += kTilePairs) {
        sum = add_tile_row<Counted::kOfNonzeroA>(numbers + pair, rows + pair * kRowSize, kRowSize,
                                                 sum);
      }
      hn::StoreU(sum, kReals, sums);
    }
  }

  template <int kColumns>
  static HWY_INLINE void add(const PanelKernel<kVectors>& kernel, const Real* pairs,
                             const Real* strip, const RowVectors&, bool guarded,
                             const KeySums& sums) {
    for (std::int32_t key = kernel.begin; key < kernel.end; key += kTileRows) {
      const std::int32_t count = std::min(kernel.end - key, kTileRows);
      const Real* const numbers = pairs + key * kRowElements;
      Real* const at = sums.data + key * sums.stride;
      if (guarded) {
        for (std::int32_t i = 0; i < count; ++i) {
          add_guarded<kColumns>(numbers + i * kRowElements, strip, at + i * sums.stride);
        }
      } else if (HWY_LIKELY(count == kTileRows)) {
        add_to_block<kColumns>(numbers, strip, at, sums.stride);
      } else {
        add_to_some<kColumns>(numbers, strip, {at, sums.stride}, count);
      }
    }
  }
};

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TILE_PRODUCTS_INL_H_
