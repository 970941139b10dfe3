// A tile without the keys that an irregular mask hides from all of a panel's rows.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "attention/engine/panel_rows.h"
#include "attention/kernels/kernels.h"
#include "attention/masks/mask_part.h"

namespace heed::inline v0::engine {

// The keys of a tile in steps, and the rows' ranges counted in these. What kernels sum over it has
// the bits of the whole tile, where the keys that are missing here weigh 0.
template <class Real>
class StepTile {
 public:
  StepTile(const kernels::BasicTile<Real>& whole, const PanelRows<Real>& rows,
           const detail::SeenKeys& seen)
      : tile_(whole), panel_(rows.panel()), steps_(seen.steps) {
    tile_.key += steps_.first * whole.key_stride;
    tile_.key_stride *= steps_.step;
    tile_.value += steps_.first * whole.value_stride;
    tile_.value_stride *= steps_.step;
    tile_.num_keys = steps_.before(whole.num_keys);
    const std::int32_t end = whole.first_key + whole.num_keys;
    if (seen.alone == nullptr && panel_.all_begin <= whole.first_key && panel_.all_end >= end) {
      panel_.any_begin = panel_.all_begin = whole.first_key;
      panel_.any_end = panel_.all_end = whole.first_key + tile_.num_keys;
    } else {
      find_ranges(rows, seen);
    }
  }
  StepTile(const StepTile&) = delete;
  StepTile& operator=(const StepTile&) = delete;

  const kernels::BasicTile<Real>& tile() const { return tile_; }
  const kernels::BasicPanel<Real>& panel() const { return panel_; }

 private:
  void find_ranges(const PanelRows<Real>& rows, const detail::SeenKeys& seen) {
    begin_.fill(0);
    end_.fill(0);
    panel_.begin = begin_.data();
    panel_.end = end_.data();
    constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();
    panel_.any_begin = panel_.all_end = kLast;
    panel_.any_end = panel_.all_begin = 0;
    std::fill_n(panel_.vector_begin, kernels::kPanelVectors, kLast);
    std::fill_n(panel_.vector_end, kernels::kPanelVectors, 0);
    for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
      const RowRange keys = rows.range(seen, r);
      const std::int32_t begin = in_steps(keys.begin);
      const std::int32_t end = in_steps(keys.end);
      begin_[static_cast<std::size_t>(r)] = begin;
      end_[static_cast<std::size_t>(r)] = end;
      panel_.all_begin = std::max(panel_.all_begin, begin);
      panel_.all_end = std::min(panel_.all_end, end);
      if (begin >= end) continue;
      std::int32_t& vector_begin = panel_.vector_begin[r / rows.lanes()];
      std::int32_t& vector_end = panel_.vector_end[r / rows.lanes()];
      vector_begin = std::min(vector_begin, begin);
      vector_end = std::max(vector_end, end);
      panel_.any_begin = std::min(panel_.any_begin, begin);
      panel_.any_end = std::max(panel_.any_end, end);
    }
  }

  // Where a key of the sequence stands when only these are counted from the tile's first on.
  std::int32_t in_steps(std::int64_t key) const {
    const auto in_tile = std::clamp<std::int64_t>(key - tile_.first_key, 0, kernels::kTileKeys);
    return tile_.first_key + steps_.before(static_cast<std::int32_t>(in_tile));
  }

  kernels::BasicTile<Real> tile_;
  kernels::BasicPanel<Real> panel_;
  const detail::KeySteps& steps_;
  std::array<std::int32_t, kernels::kMaxPanelWidth> begin_;
  std::array<std::int32_t, kernels::kMaxPanelWidth> end_;
};

}  // namespace heed::inline v0::engine
