// Decode panels: the choice of a kernel and of its way of reading memory.
#if defined(HEED_ATTEND_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_ATTEND_ROWS_INL_H_
#undef HEED_ATTEND_ROWS_INL_H_
#else
#define HEED_ATTEND_ROWS_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/kernels/decode/prefetch.h"
#include "attention/kernels/decode/rows-inl.h"
#include "attention/kernels/kernels.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

inline void unpack_rows(const Real* out, std::int32_t num_rows, std::int32_t value_dim,
                        const Real* factors, Real* const* rows) {
  const std::int32_t stride = (value_dim + kLanes - 1) / kLanes * kLanes;
  for (std::int32_t r = 0; r < num_rows; ++r) {
    for (std::int32_t d = 0; d < value_dim; ++d) {
      rows[r][d] = out[r * stride + d] * factors[r] + 0.0F;  // never −0
    }
  }
}

// Calls RowsKernel<kRows> for a number of rows known at run time.
template <Reading kReading, int kRows>
HWY_INLINE void attend_some_rows(const StoredTile& tile, const StoredTile* next, const Panel& panel,
                                 const PanelOptions& options, PanelState& state, Real* weights,
                                 std::int32_t first_row, std::int32_t rows) {
  if (rows == kRows) {
    return RowsKernel<kRows, kReading>(tile, next, panel, options, state, weights, first_row)
        .attend();
  }
  if constexpr (kRows > 1) {
    attend_some_rows<kReading, kRows - 1>(tile, next, panel, options, state, weights, first_row,
                                          rows);
  }
}

// The largest number of rows for which a tile may be read in order. That needs a whole row of
// values in one pass: the sums of all rows and its four or eight vectors must fit the registers.
constexpr int kMostRowsInOrder =
    HEED_REAL_BITS == 32 && !kInPairs && HWY_TARGET <= HWY_AVX3 ? 4 : 0;
inline int most_rows_in_order(const Panel& panel) {
  if (panel.value_dim == 4 * kLanes) return 4;
  return panel.value_dim == 8 * kLanes ? kMostRowsOfEightVectors : 0;
}

// True if the keys of a tile are contiguous in memory, and so are its values.
inline bool is_of_stretches(const StoredTile& tile, const Panel& panel) {
  return TileSide(tile.key, tile.num_keys, panel.head_dim, sizeof(Real)).is_one_stretch() &&
         TileSide(tile.value, tile.num_keys, panel.value_dim, sizeof(Real)).is_one_stretch();
}

// True if a contiguous tile whose keys are columns is read in order: any storage but float32 only
// for one row, as with conversions, several chains of additions over one group of keys take longer
// than memory; int4 never, as its columns of values are in blocks.
inline bool can_be_read_in_order(const StoredTile& tile, const Panel& panel) {
  const KvStorage key = tile.key.storage;
  const KvStorage value = tile.value.storage;
  if (key == KvStorage::kInt4 || value == KvStorage::kInt4) return false;
  return panel.num_rows == 1 || (key == KvStorage::kFloat32 && value == KvStorage::kFloat32);
}

// Divides the rows into parts of about equal size where they are too many for one kernel. Guarded
// rows, which are rare, are computed one by one.
HWY_INLINE void attend_tile(const StoredTile& tile, const StoredTile* next, const Panel& panel,
                            const PanelOptions& options, PanelState& state, Real* weights) {
  if (options.guarded) {
    for (std::int32_t r = 0; r < panel.num_rows; ++r) {
      attend_some_rows<Reading::kGuarded, 1>(tile, nullptr, panel, options, state, weights, r, 1);
    }
    return;
  }
  if constexpr (kMostRowsInOrder > 0) {
    if (options.stretches != Stretches::kGroupsInTurn &&
        panel.num_rows <= most_rows_in_order(panel) && is_of_stretches(tile, panel)) {
      if (!tile.key.is_columns) {
        return attend_some_rows<Reading::kRowsInOrder, kMostRowsInOrder>(
            tile, next, panel, options, state, weights, 0, panel.num_rows);
      }
      if (can_be_read_in_order(tile, panel)) {
        return attend_some_rows<Reading::kInOrder, kMostRowsInOrder>(
            tile, next, panel, options, state, weights, 0, panel.num_rows);
      }
    }
  }
  const std::int32_t parts = (panel.num_rows - 1) / kMostRowsAtOnce + 1;
  for (std::int32_t part = 0; part < parts; ++part) {
    const std::int32_t first = panel.num_rows * part / parts;
    const std::int32_t last = panel.num_rows * (part + 1) / parts;
    attend_some_rows<Reading::kAhead, kMostRowsAtOnce>(
        tile, part == 0 ? next : nullptr, panel, options, state, weights, first, last - first);
  }
}

// Does as little as possible between two tiles, as memory waits in the meantime.
inline void attend_rows(std::span<const StoredTile> tiles, const StoredTile* next,
                        const Panel& panel, const PanelOptions& options, PanelState& state,
                        Real* weights) {
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    attend_tile(tiles[i], i + 1 < tiles.size() ? &tiles[i + 1] : next, panel, options, state,
                weights);
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_ATTEND_ROWS_INL_H_
