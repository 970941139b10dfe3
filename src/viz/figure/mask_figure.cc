#include <fmt/format.h>

#include <algorithm>

#include "heed/viz/attention_figure.h"
#include "viz/figure/matrix_panel.h"

namespace heed { inline namespace v0 {
namespace {

using figure::Grid;

// 1 where a query sees a key, masked elsewhere.
Grid pool_mask(TensorView<const bool> visible, int target) {
  constexpr float kVisible = 1;
  const FloatView ones = FloatView(&kVisible, Shape{}).broadcast_to(visible.shape());
  return figure::pool(ones, visible, target, false);
}

Cells mask_cells(const Grid& grid, const MaskFigureOptions& options) {
  Cells cells{.rows = grid.rows, .columns = grid.columns};
  for (const float value : grid.values) {
    const bool is_masked = value == figure::kMasked;
    const Rgb masked = options.masked_color.value_or(options.visible_color);
    cells.colors.push_back(is_masked ? masked : options.visible_color);
    if (!options.masked_color) cells.is_hatched.push_back(is_masked);
    if (!grid.is_pooled()) {
      cells.texts.push_back(is_masked ? options.masked_mark : options.visible_mark);
    }
  }
  return cells;
}

std::string legend_name(const std::string& mark, const char* meaning) {
  return mark.empty() ? meaning : fmt::format("{}  {}", mark, meaning);
}

}  // namespace

Figure mask_figure(TensorView<const bool> visible, const MaskFigureOptions& options) {
  const char* function = "mask_figure";
  figure::check_matrices(function, "masks", visible.shape(), 3);
  const TensorView<const bool> masks = visible.rank() == 2 ? visible.to_rank(3) : visible;
  const std::int64_t count = masks.extent(0);
  figure::check_labels(function, "query", options.queries.size(), masks.extent(1));
  figure::check_labels(function, "key", options.keys.size(), masks.extent(2));
  figure::check_labels(function, "panel", options.panels.size(), count);
  const int target = std::min(figure::target_extent(count), 340);
  Figure result{.title = options.title,
                .note = options.note,
                .columns = figure::default_columns(count),
                .theme = options.theme};
  for (std::int64_t i = 0; i < count; ++i) {
    const Grid grid = pool_mask(masks.select(0, i), target);
    Panel panel = figure::matrix_panel(
        grid, {options.queries, options.keys, options.query_title, options.key_title}, target);
    panel.cells = mask_cells(grid, options);
    panel.swatches = {{legend_name(options.visible_mark, "can attend"), options.visible_color},
                      {legend_name(options.masked_mark, "masked"), options.masked_color}};
    if (!options.panels.empty()) panel.title = options.panels[static_cast<std::size_t>(i)];
    if (i == 0) result.note = figure::joined_notes(result.note, figure::pooling_note(grid));
    result.panels.push_back(std::move(panel));
  }
  return result;
}

}}  // namespace heed::v0
