// Rows of memory that panels fetch while they compute a tile, because they are read next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/engine/panel_rows.h"
#include "attention/kernels/kernels.h"
#include "attention/request/tensor_rows.h"

namespace heed { inline namespace v0 { namespace engine {

// The number of keys after a tile, up to one tile of them, that one of the panels will read in
// place.
template <class Real, class Visitor>
std::int64_t following_keys(const Schedule<Real>& schedule, std::span<const Visitor> panels,
                            RowRange rest) {
  if (!schedule.fetches_rows || !schedule.reads_in_place() || rest.begin >= rest.end) return 0;
  const bool are_read = std::any_of(panels.begin(), panels.end(), [&](const Visitor& panel) {
    return panel.rows().tiles().visits(rest.begin);
  });
  return are_read ? std::min<std::int64_t>(rest.end - rest.begin, kernels::kTileKeys) : 0;
}

class RowsAhead {
 public:
  // Starts with a tile, after which there are `following` keys and values in memory.
  void start_tile(std::int64_t following) {
    following_ = following;
    next_ = 0;
  }

  // Starts with the rows for a panel to fetch while it computes the tile.
  void start_panel() {
    count_ = 0;
    bytes_ = 0;
  }

  // Adds the rows of a tensor of queries or results for the rows of a panel.
  template <class Real, class Byte>
  void add_rows(const PanelRows<Real>& panel, const BasicRows<Byte>& tensor, std::int64_t dim) {
    for (std::int32_t r = 0; r < panel.num_rows(); ++r) {
      put(tensor.row(panel.batch(), panel.head(r), panel.query(r)));
    }
    bytes_ = std::max(bytes_, static_cast<std::int32_t>(dim * size_of(tensor.type)));
  }

  // Adds the next of the following keys and values: as many as fit beside the panel's products with
  // the tile, which have numbers_per_key numbers for each key, but at least an equal share among
  // the panels that are left, in proportion to the keys of the tile that it sees.
  template <class Real>
  void add_following(const PanelRows<Real>& rows, const kernels::BasicTile<Real>& tile,
                     std::int64_t numbers_per_key, std::size_t panels_left) {
    if (next_ == following_) return;
    const kernels::BasicPanel<Real>& panel = rows.panel();
    bytes_ = std::max(bytes_, std::max(panel.head_dim, panel.value_dim) *
                                  static_cast<std::int32_t>(sizeof(Real)));
    const std::int64_t keys = std::min(panel.any_end - tile.first_key, tile.num_keys) -
                              std::max(panel.any_begin - tile.first_key, 0);
    constexpr std::int32_t kLine = kernels::FetchedRows::kLine;
    const std::int64_t most =
        keys * numbers_per_key / kNumbersPerLine / ((bytes_ + kLine - 1) / kLine);
    const std::int64_t share =
        (following_ - next_) * keys / tile.num_keys / static_cast<std::int64_t>(panels_left);
    const std::int64_t end = std::min(next_ + std::max((most - count_) / 2, share), following_);
    for (; next_ < end; ++next_) {
      const std::int64_t j = tile.num_keys + next_;
      put(reinterpret_cast<const std::byte*>(tile.key + j * tile.key_stride));
      put(reinterpret_cast<const std::byte*>(tile.value + j * tile.value_stride));
    }
  }

  // Valid until the next change.
  kernels::FetchedRows rows() const { return {rows_.data(), count_, bytes_}; }

 private:
  // The numbers that a panel multiplies for each line that it fetches. With three vectors of rows
  // this takes some 70 cycles. With some 16 lines in flight a processor waits for them before it
  // goes on.
  static constexpr std::int64_t kNumbersPerLine = 48;

  void put(const std::byte* row) { rows_[static_cast<std::size_t>(count_++)] = row; }

  // Room for a tile's keys and values, the results of one panel, and the queries of another with
  // two rows more for each in the backward pass.
  std::array<const std::byte*, 2 * kernels::kTileKeys + 4 * kernels::kMaxPanelWidth> rows_;
  std::int32_t count_ = 0;
  std::int32_t bytes_ = 0;
  // The keys after the tile, and the number of them that panels fetch already.
  std::int64_t following_ = 0;
  std::int64_t next_ = 0;
};

}}}  // namespace heed::v0::engine
