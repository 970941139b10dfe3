// Rows of memory that are fetched while a panel computes a tile, for what comes next.
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

// How many of the keys that follow a tile, up to a tile of them, one of the panels will read where
// they are.
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
  // Begins with a tile that so many keys and values follow in memory.
  void start_tile(std::int64_t following) {
    following_ = following;
    next_ = 0;
  }

  // Begins with what a panel is to fetch while it computes the tile.
  void start_panel() {
    count_ = 0;
    bytes_ = 0;
  }

  // What a tensor of queries or results has for the rows of a panel.
  template <class Real, class Byte>
  void add_rows(const PanelRows<Real>& panel, const BasicRows<Byte>& tensor, std::int64_t dim) {
    for (std::int32_t r = 0; r < panel.num_rows(); ++r) {
      put(tensor.row(panel.batch(), panel.head(r), panel.query(r)));
    }
    bytes_ = std::max(bytes_, static_cast<std::int32_t>(dim * size_of(tensor.type)));
  }

  // The next of the keys and values that follow, as many as come beside a panel's products with the
  // tile, which are of so many numbers for each key; or else, of a tile all of whose keys it sees,
  // an equal share with the panels that are left.
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
  // How many numbers a panel multiplies, where it has three vectors of rows in some 70 cycles, for
  // each line that is fetched meanwhile: a processor that has some 16 lines under way waits for
  // them before it goes on.
  static constexpr std::int64_t kNumbersPerLine = 48;

  void put(const std::byte* row) { rows_[static_cast<std::size_t>(count_++)] = row; }

  // A tile's keys and values, the results of one panel, and of another the queries and, on the way
  // back, two rows more.
  std::array<const std::byte*, 2 * kernels::kTileKeys + 4 * kernels::kMaxPanelWidth> rows_;
  std::int32_t count_ = 0;
  std::int32_t bytes_ = 0;
  // Keys that follow the tile, and how many of them panels were given.
  std::int64_t following_ = 0;
  std::int64_t next_ = 0;
};

}}}  // namespace heed::v0::engine
