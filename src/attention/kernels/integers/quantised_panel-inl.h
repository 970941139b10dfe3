// Quantised keys and values for panels of whole vectors: rows are computed as in decode, and
// transposed.
#if defined(HEED_QUANTISED_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_QUANTISED_PANEL_INL_H_
#undef HEED_QUANTISED_PANEL_INL_H_
#else
#define HEED_QUANTISED_PANEL_INL_H_
#endif

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/kernels/integers/integers.h"
#include "attention/kernels/types-inl.h"
#include "hwy/highway.h"

#if HEED_REAL_BITS == 32 && !defined(HEED_OF_BFLOAT16)

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The number of rows that are transposed at a time.
constexpr std::int32_t kTurnedRows = 4;

// products[key][row] = query · key for the keys of the tile from begin to end and `width` rows, in
// whole vectors; 0 for rows that do not exist.
inline void multiply_quantised_keys(const Tile& tile, const Panel& panel, std::int32_t begin,
                                    std::int32_t end, std::int32_t width, Real* products) {
  HWY_ALIGN Real turned[kTurnedRows * kTileKeys];
  const StoredTile& stored = *tile.stored;
  const TileSide keys(stored.key, stored.num_keys, panel.head_dim, sizeof(Real));
  const QueryDigits query{panel.digits, panel.head_dim};
  for (std::int32_t first = 0; first < width; first += kTurnedRows) {
    const std::int32_t rows = std::clamp(panel.num_rows - first, 0, kTurnedRows);
    std::fill_n(turned + rows * kTileKeys, (kTurnedRows - rows) * kTileKeys, Real{0});
    if (rows > 0) {
      panel.integers->multiply_keys({keys, panel.head_dim, begin, end}, query.from(first), rows,
                                    turned);
    }
    for (std::int32_t key = begin; key < end; ++key) {
      for (std::int32_t r = 0; r < kTurnedRows; ++r) {
        products[key * width + first + r] = turned[r * kTileKeys + key];
      }
    }
  }
}

// Transposed rows of weights, and the sums to which their products with values are added.
class TurnedSums {
 public:
  TurnedSums(const Panel& panel, std::int32_t width)
      : panel_(panel),
        width_(width),
        stride_((panel.value_dim + kLanes - 1) / kLanes * kLanes),
        sums_(static_cast<std::size_t>(kTurnedRows * stride_)) {}

  // Sets weights(), [kTurnedRows][kTileKeys], to weights[key][row] for keys that the row sees,
  // otherwise to 0.
  void take_weights(const Tile& tile, std::int32_t first, std::int32_t rows, const Real* weights) {
    std::fill_n(weights_, kTurnedRows * kTileKeys, Real{0});
    for (std::int32_t r = 0; r < rows; ++r) {
      const std::int32_t from = std::max(panel_.begin[first + r] - tile.first_key, 0);
      const std::int32_t to = std::min(panel_.end[first + r] - tile.first_key, tile.num_keys);
      for (std::int32_t key = from; key < to; ++key) {
        weights_[r * kTileKeys + key] = weights[key * width_ + first + r];
      }
    }
  }
  void take_sums(const Real* out, std::int32_t first, std::int32_t rows) {
    for_each(first, rows, [&](Real& sum, std::int64_t at) { sum = out[at]; });
  }
  void put_sums(Real* out, std::int32_t first, std::int32_t rows) {
    for_each(first, rows, [&](const Real& sum, std::int64_t at) { out[at] = sum; });
  }

  Real* weights() { return weights_; }
  // The sums of weights are not used, as the panel has its own.
  WeightedSums sums() { return {weight_sums_, sums_.data(), stride_}; }

 private:
  // Calls use(sum, its place in the panel).
  template <class Use>
  void for_each(std::int32_t first, std::int32_t rows, const Use& use) {
    for (std::int64_t d = 0; d < panel_.value_dim; ++d) {
      for (std::int32_t r = 0; r < rows; ++r) {
        use(sums_[static_cast<std::size_t>(r * stride_ + d)], d * width_ + first + r);
      }
    }
  }

  const Panel& panel_;
  std::int32_t width_;
  std::int64_t stride_;
  HWY_ALIGN Real weights_[kTurnedRows * kTileKeys];
  std::vector<Real> sums_;
  Real weight_sums_[kTurnedRows] = {};
};

// out[column][row] += Σ weight · value over the keys of the tile from begin to end.
inline void add_quantised_values(const Tile& tile, const Panel& panel, std::int32_t begin,
                                 std::int32_t end, const Real* weights, Real* out) {
  const std::int32_t width = panel.vectors * kLanes;
  const StoredTile& stored = *tile.stored;
  const TileSide values(stored.value, stored.num_keys, panel.value_dim, sizeof(Real));
  TurnedSums turned(panel, width);
  for (std::int32_t first = 0; first < panel.num_rows; first += kTurnedRows) {
    const std::int32_t rows = std::min(panel.num_rows - first, kTurnedRows);
    turned.take_weights(tile, first, rows, weights);
    turned.take_sums(out, first, rows);
    panel.integers->add_values({values, panel.value_dim, begin, end}, turned.weights(), rows,
                               turned.sums());
    turned.put_sums(out, first, rows);
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // HEED_QUANTISED_PANEL_INL_H_
