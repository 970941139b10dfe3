// Rows of memory that are fetched while a panel computes a tile, for what comes next.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/engine/panel_rows.h"
#include "attention/kernels/kernels.h"
#include "attention/rows.h"

namespace heed::inline v0::engine {

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
  // Begins with what panel p of several is to fetch: its part, in equal ones, of so many keys and
  // values that follow the tile in memory.
  template <class Real, class Visitor>
  void start(std::span<const Visitor> panels, std::size_t p, const kernels::BasicTile<Real>& tile,
             std::int64_t following) {
    count_ = 0;
    bytes_ = 0;
    if (following == 0) return;
    const auto part = [&](std::size_t i) {
      return tile.num_keys +
             following * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(panels.size());
    };
    for (std::int64_t j = part(p); j < part(p + 1); ++j) {
      put(reinterpret_cast<const std::byte*>(tile.key + j * tile.key_stride));
      put(reinterpret_cast<const std::byte*>(tile.value + j * tile.value_stride));
    }
    const kernels::BasicPanel<Real>& panel = panels[p].rows().panel();
    bytes_ = std::max(panel.head_dim, panel.value_dim) * static_cast<std::int32_t>(sizeof(Real));
  }

  // What a tensor of queries or results has for the rows of a panel.
  template <class Real, class Byte>
  void add_rows(const PanelRows<Real>& panel, const BasicRows<Byte>& tensor, std::int64_t dim) {
    for (std::int32_t r = 0; r < panel.num_rows(); ++r) {
      put(tensor.row(panel.batch(), panel.head(r), panel.query(r)));
    }
    bytes_ = std::max(bytes_, static_cast<std::int32_t>(dim * size_of(tensor.type)));
  }

  // Valid until the next change.
  kernels::FetchedRows rows() const { return {rows_.data(), count_, bytes_}; }

 private:
  void put(const std::byte* row) { rows_[static_cast<std::size_t>(count_++)] = row; }

  // A tile's keys and values, the results of one panel, and of another the queries and, on the way
  // back, two rows more.
  std::array<const std::byte*, 2 * kernels::kTileKeys + 4 * kernels::kMaxPanelWidth> rows_;
  std::int32_t count_ = 0;
  std::int32_t bytes_ = 0;
};

}  // namespace heed::inline v0::engine
