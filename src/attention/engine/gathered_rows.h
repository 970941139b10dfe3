// Of a tile that few rows of a block see, these rows alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "attention/engine/row_orders.h"
#include "attention/engine/running_softmax.h"

namespace heed::inline v0::engine {

// Where neighbouring queries see other tiles, as those that choose blocks do, most panels have some
// row that sees a tile, and few rows do. Then these are taken together, with what they have summed,
// for this tile: what is moved for a row is little beside its products with a tile of keys.
template <class Real>
class GatheredRows {
 public:
  GatheredRows(const Schedule<Real>& schedule, const SoftmaxMemory<Real>& parts, std::byte* memory)
      : panel_rows_(schedule.panel_rows), panel_(schedule, parts, memory) {
    rows_.reserve(static_cast<std::size_t>(schedule.block_rows()));
  }

  // Adds a tile to the rows of these panels that see some key of it, if that are at most half of
  // those of the panels that visit it; otherwise returns false.
  bool add(const Job<Real>& job, std::span<RunningSoftmax<Real>> panels,
           const kernels::BasicTile<Real>& tile, const ScoreScratch<Real>& scratch,
           Real* staged_rows) {
    if (2 * find_rows(panels, tile) > num_visiting_) return false;
    for (std::size_t first = 0; first < rows_.size(); first += panel_rows_) {
      const std::size_t count = std::min(panel_rows_, rows_.size() - first);
      add_panel(job, panels, std::span(rows_).subspan(first, count), tile, scratch, staged_rows);
    }
    return true;
  }

 private:
  // Finds the rows that see some key of the tile, and how many rows the panels have that visit it.
  std::size_t find_rows(std::span<const RunningSoftmax<Real>> panels,
                        const kernels::BasicTile<Real>& tile) {
    rows_.clear();
    num_visiting_ = 0;
    for (std::size_t p = 0; p < panels.size(); ++p) {
      const PanelRows<Real>& rows = panels[p].rows();
      if (!rows.sees(tile)) continue;
      num_visiting_ += static_cast<std::size_t>(rows.num_rows());
      detail::RowBits seen;
      rows.see(tile, seen);
      for (std::int32_t r = 0; r < rows.num_rows(); ++r) {
        if (seen[static_cast<std::size_t>(r)].is_empty()) continue;
        rows_.push_back({static_cast<std::int32_t>(p), r});
      }
    }
    return rows_.size();
  }

  void add_panel(const Job<Real>& job, std::span<RunningSoftmax<Real>> panels,
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
};

}  // namespace heed::inline v0::engine
