// The rows of a block in two orders: one after the other, and in steps.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// A row of one of several panels.
struct PanelRow {
  std::int32_t panel;
  std::int32_t row;
};

// A mask may show similar keys to neighbouring queries in some tiles, as a window does, and to
// queries in steps in others, as a stride does. A block then has its rows in both orders, each
// divided into panels, and every tile is computed in the order that suits it. When the order
// changes, the sums of a row move to its place in the other order (PanelRow), so that each row has
// its keys in order.
template <class Real>
class RowOrders {
 public:
  RowOrders(const Schedule<Real>& schedule, const Request<Real>& request, const RowBlock& block)
      : request_(request),
        block_(block),
        step_(schedule.tile_step),
        panel_rows_(schedule.panel_rows),
        group_(request.heads_per_kv_head),
        first_query_(block.first_query + block.rows.begin / group_),
        num_queries_((block.rows.end - block.rows.begin) / group_) {}

  // True if rows in steps suit a tile of these keys: rows of different offsets see different keys
  // of it, so that the sums over rows of each key are in the order of rows as well.
  bool suits_steps(RowRange keys) const {
    if (num_queries_ <= 1) return false;
    const std::int64_t last_query = first_query_ + num_queries_ - 1;
    const std::int64_t first = request_.query(first_query_);
    const std::int64_t last = request_.query(last_query);
    // With gaps between the queries of a part, the places of queries in steps are not in steps.
    if (last - first != last_query - first_query_) return false;
    const std::int64_t offset = request_.scores().query_offset[block_.batch];
    return request_.mask.key_step({block_.batch, {first + offset, last + offset + 1}}, keys) %
               step_ ==
           0;
  }

  // Calls visit(rows of a panel) for the panels of rows in steps. Rows are numbered from 0 for each
  // offset.
  template <class Visit>
  void for_each_panel(const Visit& visit) const {
    for (std::int64_t first = 0; first < step_; ++first) {
      RowBlock panel{.batch = block_.batch,
                     .kv_head = block_.kv_head,
                     .rows = {0, 0},
                     .first_query = first_query_ + first,
                     .query_step = step_};
      const std::int64_t rows = rows_from(first);
      for (std::int64_t begin = 0; begin < rows; begin = panel.rows.end) {
        panel.rows = {begin, std::min<std::int64_t>(begin + panel_rows_, rows)};
        visit(panel);
      }
    }
  }

  // Moves the sums of all rows from the panels of one order to those of the other, which are those
  // in steps if to_steps is true.
  template <class Panel>
  void move_sums(std::span<Panel> from, std::span<Panel> to, bool to_steps) const {
    for_each_row([&](const PanelRow& in_order, const PanelRow& in_steps) {
      const PanelRow& source = to_steps ? in_order : in_steps;
      const PanelRow& target = to_steps ? in_steps : in_order;
      to[static_cast<std::size_t>(target.panel)].take_row(
          target.row, from[static_cast<std::size_t>(source.panel)], source.row);
    });
  }

 private:
  // Calls visit(place in order, place in steps) for every row of the block.
  template <class Visit>
  void for_each_row(const Visit& visit) const {
    std::int32_t panel = 0;
    for (std::int64_t first = 0; first < step_; ++first) {
      const std::int64_t rows = rows_from(first);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t in_order = (row / group_ * step_ + first) * group_ + row % group_;
        visit(place(0, in_order), place(panel, row));
      }
      panel += static_cast<std::int32_t>((rows + panel_rows_ - 1) / panel_rows_);
    }
  }

  // The number of rows in steps from query `first` of the block on.
  std::int64_t rows_from(std::int64_t first) const {
    return std::max<std::int64_t>((num_queries_ - first + step_ - 1) / step_, 0) * group_;
  }
  PanelRow place(std::int32_t first_panel, std::int64_t row) const {
    return {first_panel + static_cast<std::int32_t>(row / panel_rows_),
            static_cast<std::int32_t>(row % panel_rows_)};
  }

  const Request<Real>& request_;
  RowBlock block_;
  std::int64_t step_;
  std::int32_t panel_rows_;
  std::int64_t group_;
  std::int64_t first_query_;
  std::int64_t num_queries_;
};

}}}  // namespace heed::v0::engine
