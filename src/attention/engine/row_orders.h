// The rows of a block in two orders: as they follow each other, and a step apart.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// One of some panels, and a row of it.
struct PanelRow {
  std::int32_t panel;
  std::int32_t row;
};

// A mask may show neighbouring queries the same keys in some tiles, as a window does, and queries
// a step apart in others, as a stride does. Then a block has its rows in both orders, each divided
// into panels, and every tile takes the one that suits it. Sums of a row go on in the other order
// where they were (PanelRow), so that each has its keys one after the other as ever.
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

  // Whether rows a step apart suit a tile of these keys: rows of other steps see none of the keys
  // that these see, so that the sums over rows of a key find theirs in order, too.
  bool suits_steps(RowRange keys) const {
    if (num_queries_ <= 1) return false;
    const std::int64_t last_query = first_query_ + num_queries_ - 1;
    const std::int64_t first = request_.query(first_query_);
    const std::int64_t last = request_.query(last_query);
    // Of a part that has gaps, places are not in steps where queries are.
    if (last - first != last_query - first_query_) return false;
    const std::int64_t offset = request_.shape.query_offset[block_.batch];
    return request_.mask.key_step({block_.batch, {first + offset, last + offset + 1}}, keys) %
               step_ ==
           0;
  }

  // Calls visit(rows of a panel) for the panels a step apart, in which rows are counted anew.
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

  // Panels of one order, which are in steps or not, take over what those of the other have summed.
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
  // Calls visit(row in order, row in steps) for every row of the block.
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

  // How many rows stand in steps from this query of the block on.
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
