// Panels of few rows: which kernels take them, and how these read memory.
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

// Calls RowsKernel<kRows> for a number of rows that is known as the program runs.
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

// Most rows for which a tile may be read in order, which needs a whole row of values in one pass:
// beside the sums of all rows its vectors, four or eight, must fit the registers.
constexpr int kMostRowsInOrder =
    HEED_REAL_BITS == 32 && !kInPairs && HWY_TARGET <= HWY_AVX3 ? 4 : 0;
inline int most_rows_in_order(const Panel& panel) {
  if (panel.value_dim == 4 * kLanes) return 4;
  return panel.value_dim == 8 * kLanes ? kMostRowsOfEightVectors : 0;
}

// Whether the keys and the values of a tile each lie behind each other.
inline bool is_of_stretches(const StoredTile& tile, const Panel& panel) {
  return TileSide(tile.key, tile.num_keys, panel.head_dim, sizeof(Real)).is_one_stretch() &&
         TileSide(tile.value, tile.num_keys, panel.value_dim, sizeof(Real)).is_one_stretch();
}

// Whether a tile of stretches whose keys are columns is read in order: what is not float32 only for
// one row, for beside conversions several chains of additions over one group of keys take longer
// than memory; int4 never, which has columns of values in blocks.
inline bool can_be_read_in_order(const StoredTile& tile, const Panel& panel) {
  const KvStorage key = tile.key.storage;
  const KvStorage value = tile.value.storage;
  if (key == KvStorage::kInt4 || value == KvStorage::kInt4) return false;
  return panel.num_rows == 1 || (key == KvStorage::kFloat32 && value == KvStorage::kFloat32);
}

// In parts of about equal size, where there are more rows than are taken at once. Guarded, which is
// rare, one by one.
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

// Whatever else is done between two tiles, memory waits for.
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
