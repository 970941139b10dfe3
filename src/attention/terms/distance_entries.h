// The entries of a table of relative positions that the scores of a tile use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/score_loops.h"
#include "heed/attention/relative_position.h"

namespace heed { inline namespace v0 {

// Rows of a tile whose queries lie close together.
struct CloseRows {
  // The largest number of different distances of these rows to the keys of the tile.
  static constexpr std::int64_t kMostDistances = kernels::kTileKeys + kernels::kMaxPanelWidth;

  std::int32_t count = 0;
  std::array<std::int32_t, kernels::kMaxPanelWidth> rows;
  std::int64_t least_distance = 0;
  std::int64_t greatest_distance = 0;
  bool are_all = false;  // true if these are all rows of the tile

  std::int32_t first() const { return rows[0]; }
};

// Divides the rows of a tile into groups of close rows, in order, and calls visit(group) for each.
// Rows r and s may be in one group only if may_join(r, s).
template <class Real, class MayJoin, class Visit>
void for_each_close_rows(const kernels::BasicScoreTile<Real>& tile, const MayJoin& may_join,
                         const Visit& visit) {
  std::array<bool, kernels::kMaxPanelWidth> are_done{};
  for (std::int32_t first = 0; first < tile.num_rows; ++first) {
    if (are_done[static_cast<std::size_t>(first)]) continue;
    CloseRows close;
    std::int64_t least_query = tile.q_idx[first];
    std::int64_t greatest_query = least_query;
    for (std::int32_t r = first; r < tile.num_rows; ++r) {
      const std::int64_t least = std::min<std::int64_t>(least_query, tile.q_idx[r]);
      const std::int64_t greatest = std::max<std::int64_t>(greatest_query, tile.q_idx[r]);
      const bool is_close = greatest - least + tile.end - tile.begin <= CloseRows::kMostDistances;
      if (are_done[static_cast<std::size_t>(r)] || !is_close || !may_join(first, r)) continue;
      least_query = least;
      greatest_query = greatest;
      are_done[static_cast<std::size_t>(r)] = true;
      close.rows[static_cast<std::size_t>(close.count++)] = r;
    }
    close.least_distance = std::int64_t{tile.first_key} + tile.begin - greatest_query;
    close.greatest_distance = std::int64_t{tile.first_key} + tile.end - 1 - least_query;
    close.are_all = close.count == tile.num_rows;
    visit(close);
  }
}

// The table entries for the distances of a group of rows, from the least to the greatest. Entries
// are numbered in this order; distances that share an entry must be neighbours.
class DistanceEntries {
 public:
  DistanceEntries(const RelativeBuckets& buckets, const CloseRows& close)
      : least_(close.least_distance) {
    if (buckets(least_) == buckets(close.greatest_distance)) {
      entries_[count_++] = buckets(least_);
      return;
    }
    for (std::int64_t distance = least_; distance <= close.greatest_distance; ++distance) {
      const std::int64_t entry = buckets(distance);
      if (count_ == 0 || entries_[count_ - 1] != entry) entries_[count_++] = entry;
      numbers_[static_cast<std::size_t>(distance - least_)] = static_cast<std::int16_t>(count_ - 1);
    }
  }

  // True if all scores have the same entry.
  bool are_one() const { return count_ == 1; }
  std::int64_t count() const { return static_cast<std::int64_t>(count_); }
  std::int64_t operator[](std::int64_t number) const {
    return entries_[static_cast<std::size_t>(number)];
  }
  // The number of the entry of a distance that lies between the least and the greatest.
  std::int64_t number_of(std::int64_t distance) const {
    return are_one() ? 0 : numbers_[static_cast<std::size_t>(distance - least_)];
  }

 private:
  std::int64_t least_;
  std::size_t count_ = 0;
  std::array<std::int64_t, CloseRows::kMostDistances> entries_;
  std::array<std::int16_t, CloseRows::kMostDistances> numbers_;
};

}}  // namespace heed::v0
