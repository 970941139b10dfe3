// Panels of the rows that see a tile, where these are few.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/engine/row_orders.h"
#include "attention/engine/running_softmax.h"

namespace heed { inline namespace v0 { namespace engine {

// Where neighbouring queries see different tiles, as with masks that select blocks, most panels
// have some row that sees a given tile, but few such rows. These rows are then gathered, with their
// states, into panels of their own for this tile: moving a row costs little compared with its
// products with a tile of keys. As finding these rows takes time too, it is skipped for the next
// tiles after a tile for which it did not pay.
template <class Real>
class GatheredRows {
 public:
  GatheredRows(const Schedule<Real>& schedule, const SoftmaxMemory<Real>& parts, std::byte* memory)
      : panel_rows_(schedule.panel_rows), panel_(schedule, parts, memory) {
    rows_.reserve(static_cast<std::size_t>(schedule.block_rows()));
  }

  // Adds a tile to the rows of these panels that see any of its keys, if they are at most 3 in 4 of
  // the rows of the panels that visit it and see many of its keys. Otherwise returns false.
  bool add(const ForwardCall<Real>& job, std::span<RunningSoftmax<Real>> panels,
           const kernels::BasicTile<Real>& tile, const ScoreScratch<Real>& scratch,
           Real* staged_rows) {
    // Rows that are computed again with guarded values form a single panel.
    if (panels.size() == 1) return false;
    if (tiles_to_wait_ > 0) {
      --tiles_to_wait_;
      return false;
    }
    find_rows(panels, tile);
    if (4 * rows_.size() > 3 * num_visiting_ || num_seen_ < kFewestKeys * rows_.size()) {
      wait_ = std::min(2 * wait_ + 1, kLongestWait);
      tiles_to_wait_ = wait_;
      return false;
    }
    wait_ = 0;
    for (std::size_t first = 0; first < rows_.size(); first += panel_rows_) {
      const std::size_t count = std::min(panel_rows_, rows_.size() - first);
      add_panel(job, panels, std::span(rows_).subspan(first, count), tile, scratch, staged_rows);
    }
    return true;
  }

 private:
  static constexpr int kLongestWait = 31;
  // The number of keys of a tile that a row must see on average. Products with fewer keys take no
  // longer than moving the row.
  static constexpr std::size_t kFewestKeys = 48;

  // Finds the rows that see some key of the tile, the number of keys they see, and the number of
  // rows of the panels that visit it.
  void find_rows(std::span<const RunningSoftmax<Real>> panels,
                 const kernels::BasicTile<Real>& tile) {
    rows_.clear();
    num_visiting_ = num_seen_ = 0;
    for (std::size_t p = 0; p < panels.size(); ++p) {
      const PanelRows<Real>& rows = panels[p].rows();
      if (!rows.sees(tile)) continue;
      num_visiting_ += static_cast<std::size_t>(rows.num_rows());
      detail::RowBits seen;
      rows.see(tile, seen);
      for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
        const detail::KeyBits& keys = seen[static_cast<std::size_t>(r)];
        if (keys.is_empty()) continue;
        rows_.push_back({static_cast<std::int32_t>(p), r});
        num_seen_ += static_cast<std::size_t>(keys.count());
      }
    }
  }

  void add_panel(const ForwardCall<Real>& job, std::span<RunningSoftmax<Real>> panels,
                 std::span<const PanelRow> rows, const kernels::BasicTile<Real>& tile,
                 const ScoreScratch<Real>& scratch, Real* staged_rows) {
    std::array<RowIndex, kernels::kMaxPanelWidth> indices;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      indices[i] = panels[static_cast<std::size_t>(rows[i].panel)].rows().row(rows[i].row);
    }
    const std::int64_t batch = panels.front().rows().batch();
    panel_.start(job, batch, {indices.data(), rows.size()},
                 {tile.first_key, tile.first_key + tile.num_keys}, staged_rows);
    panel_.enter_chunk_of(tile.first_key);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      RunningSoftmax<Real>& panel = panels[static_cast<std::size_t>(rows[i].panel)];
      panel.enter_chunk_of(tile.first_key);
      panel_.take_row(static_cast<std::int32_t>(i), panel, rows[i].row);
    }
    panel_.add(tile, scratch);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      panels[static_cast<std::size_t>(rows[i].panel)].take_row(rows[i].row, panel_,
                                                               static_cast<std::int32_t>(i));
    }
  }

  std::size_t panel_rows_;
  RunningSoftmax<Real> panel_;
  std::vector<PanelRow> rows_;
  std::size_t num_visiting_ = 0;
  std::size_t num_seen_ = 0;
  // The number of tiles to skip after the last failure, and the number of these that remain.
  int wait_ = 0;
  int tiles_to_wait_ = 0;
};

}}}  // namespace heed::v0::engine
