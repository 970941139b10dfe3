// Panels of rows and tiles of keys for tests of single kernels, and the same in plain loops.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "attention/kernels/decode/stored_tile.h"
#include "heed/core/tensor.h"
#include "support/tensors.h"

namespace heed::testing_support {

// Calls check(Real{}) for float and double, which have the same kernels.
template <class Check>
void for_each_real(const Check& check) {
  {
    SCOPED_TRACE("float");
    check(float{});
  }
  {
    SCOPED_TRACE("double");
    check(double{});
  }
}

template <class Real>
constexpr Real kInfinityOf = std::numeric_limits<Real>::infinity();

struct PanelSizes {
  std::int32_t vectors = 1;
  std::int32_t head_dim = 1;
  std::int32_t value_dim = 1;
  std::int32_t kv_len = 1;
  std::int32_t few_rows = 0;  // unless 0, a panel for decode with so many rows
};

// Returns lengths and dims that fill neither vectors nor register blocks nor tiles, and some that
// do.
inline std::vector<PanelSizes> awkward_panels() {
  return {{1, 1, 1, 1},    {2, 3, 5, 7},     {3, 8, 16, 128}, {3, 17, 9, 129},
          {1, 64, 33, 50}, {2, 31, 64, 300}, {3, 5, 1, 259},  {1, 16, 24, 256}};
}

// A panel whose rows see random ranges of keys, some empty, with normal queries, keys and values.
template <class Real>
class PanelCase {
 public:
  using Panel = kernels::BasicPanel<Real>;
  using State = kernels::BasicPanelState<Real>;
  using Tile = kernels::BasicTile<Real>;

  PanelCase(const kernels::BasicKernelTable<Real>& table, const PanelSizes& sizes,
            bool sees_everything = false)
      : sizes_(sizes),
        lanes_(table.lanes),
        width_(sizes.few_rows > 0 ? sizes.few_rows : sizes.vectors * table.lanes),
        query_(normal<Real>({sizes.head_dim, width_}, 1)),
        key_(normal<Real>({sizes.kv_len, sizes.head_dim}, 2)),
        value_(normal<Real>({sizes.kv_len, sizes.value_dim}, 3)) {
    std::mt19937 engine(4);
    std::uniform_int_distribution<std::int32_t> position(0, sizes.kv_len);
    for (std::int32_t r = 0; r < width_; ++r) {
      const auto [from, to] = std::minmax({position(engine), position(engine)});
      begin_.push_back(sees_everything ? 0 : from);
      end_.push_back(sees_everything ? sizes.kv_len : to);
    }
    panel_.vectors = sizes.few_rows > 0 ? kernels::kFewRows : sizes.vectors;
    panel_.num_rows = width_;
    panel_.head_dim = sizes.head_dim;
    panel_.value_dim = sizes.value_dim;
    panel_.query = query_.data();
    find_ranges();
    state_ = new_state();
  }

  // Returns the state of rows that have seen no key. It is valid while the case exists.
  State new_state() {
    const std::int32_t whole = whole_vectors(width_);
    const std::int64_t out = std::int64_t{width_} * out_stride();
    states_.push_back(
        {Tensor<Real>({whole}), Tensor<Real>({whole}), Tensor<Real>({whole}), Tensor<Real>({out})});
    auto& [minus_m, threshold, sum, sums] = states_.back();
    std::fill_n(threshold.data(), whole, -kInfinityOf<Real>);
    return {minus_m.data(), threshold.data(), sum.data(), sums.data()};
  }

  Panel& panel() { return panel_; }
  State& state() { return state_; }
  std::int32_t width() const { return width_; }
  std::int32_t kv_len() const { return sizes_.kv_len; }

  Tile tile(std::int32_t first_key) const {
    return {.key = key_.data() + std::int64_t{first_key} * sizes_.head_dim,
            .key_stride = sizes_.head_dim,
            .value = value_.data() + std::int64_t{first_key} * sizes_.value_dim,
            .value_stride = sizes_.value_dim,
            .first_key = first_key,
            .num_keys = std::min(kernels::kTileKeys, sizes_.kv_len - first_key)};
  }

  // Returns the scores of the keys that some row sees.
  detail::BasicScoreTile<Real> score_tile(const Tile& tile, Real* scores) const {
    return {.scores = scores,
            .width = width_,
            .num_rows = width_,
            .first_key = tile.first_key,
            .begin = std::max(panel_.any_begin - tile.first_key, 0),
            .end = std::min(panel_.any_end - tile.first_key, tile.num_keys),
            .batch = 0,
            .heads = nullptr,
            .q_idx = nullptr,
            .target = detail::TileTarget::kBaseline};
  }

  // Returns the sum of row r in column d.
  Real out(std::int32_t r, std::int32_t d) const {
    return state_.out[sizes_.few_rows > 0 ? r * out_stride() + d : d * width_ + r];
  }

  // Returns the tile in the form that the decode kernel reads.
  static kernels::StoredTile stored(const Tile& tile) {
    const auto side = [&](const Real* first, std::int64_t stride) {
      kernels::StoredNumbers numbers;
      numbers.row_stride = stride * static_cast<std::int64_t>(sizeof(Real));
      for (std::int32_t key = 0; key < tile.num_keys; key += kernels::kGroupKeys) {
        numbers.groups[static_cast<std::size_t>(key / kernels::kGroupKeys)] =
            reinterpret_cast<const std::byte*>(first + key * stride);
      }
      return numbers;
    };
    return {.key = side(tile.key, tile.key_stride),
            .value = side(tile.value, tile.value_stride),
            .first_key = tile.first_key,
            .num_keys = tile.num_keys};
  }

  // Adds a tile to the state with the kernel for this panel.
  void attend(const kernels::BasicKernelTable<Real>& table, const Tile& tile, Tensor<Real>& scratch,
              const kernels::BasicPanelOptions<Real>& options = {}) {
    if (sizes_.few_rows > 0) {
      const kernels::StoredTile as_stored = stored(tile);
      table.attend_rows({&as_stored, 1}, nullptr, panel_, options, state_, scratch.data());
    } else {
      table.attend(tile, panel_, options, state_, scratch.data());
    }
  }

  // Calls use(tile) for the tiles that some row sees.
  template <class Use>
  void for_each_tile(const Use& use) const {
    for (std::int32_t key = 0; key < sizes_.kv_len; key += kernels::kTileKeys) {
      const Tile here = tile(key);
      if (panel_.any_begin < key + here.num_keys && panel_.any_end > key) use(here);
    }
  }

  Tensor<Real> scores() const { return Tensor<Real>({kernels::kTileKeys, width_}); }

  bool sees(std::int32_t r, std::int32_t key) const {
    return begin_[static_cast<std::size_t>(r)] <= key && key < end_[static_cast<std::size_t>(r)];
  }
  // Returns query · key.
  long double score(std::int32_t r, std::int32_t key) const {
    long double sum = 0;
    for (std::int32_t d = 0; d < sizes_.head_dim; ++d) {
      sum += static_cast<long double>(key_(key, d)) * query_(d, r);
    }
    return sum;
  }
  Real value(std::int32_t key, std::int32_t d) const { return value_(key, d); }
  Real key(std::int32_t key, std::int32_t d) const { return key_(key, d); }
  Tensor<Real>& values() { return value_; }

 private:
  std::int32_t whole_vectors(std::int32_t numbers) const {
    return (numbers + lanes_ - 1) / lanes_ * lanes_;
  }
  // Returns the numbers of out per row.
  std::int64_t out_stride() const {
    return sizes_.few_rows > 0 ? whole_vectors(sizes_.value_dim) : sizes_.value_dim;
  }

  void find_ranges() {
    panel_.begin = begin_.data();
    panel_.end = end_.data();
    panel_.any_begin = panel_.all_end = std::numeric_limits<std::int32_t>::max();
    std::fill(std::begin(panel_.vector_begin), std::end(panel_.vector_begin), panel_.any_begin);
    for (std::int32_t r = 0; r < width_; ++r) {
      const std::int32_t from = begin_[static_cast<std::size_t>(r)];
      const std::int32_t to = end_[static_cast<std::size_t>(r)];
      panel_.all_begin = std::max(panel_.all_begin, from);
      panel_.all_end = std::min(panel_.all_end, to);
      if (from >= to) continue;
      panel_.any_begin = std::min(panel_.any_begin, from);
      panel_.any_end = std::max(panel_.any_end, to);
      if (sizes_.few_rows > 0) continue;
      const std::int32_t v = r / lanes_;
      panel_.vector_begin[v] = std::min(panel_.vector_begin[v], from);
      panel_.vector_end[v] = std::max(panel_.vector_end[v], to);
    }
  }

  PanelSizes sizes_;
  std::int32_t lanes_;
  std::int32_t width_;
  Tensor<Real> query_;
  Tensor<Real> key_;
  Tensor<Real> value_;
  std::vector<std::int32_t> begin_;
  std::vector<std::int32_t> end_;
  std::vector<std::array<Tensor<Real>, 4>> states_;
  Panel panel_;
  State state_;
};

}  // namespace heed::testing_support
