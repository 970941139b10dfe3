// Figures of masks and of positions.
#include <fmt/format.h>

#include <algorithm>

#include "heed/core/error.h"
#include "heed/viz/attention_figure.h"
#include "viz/figure/matrix_panel.h"
#include "viz/figure/scales.h"

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

namespace {

constexpr int kImageWidth = 700;
constexpr int kImageHeight = 260;
constexpr int kCurvesWidth = 320;
constexpr int kCurvesHeight = 170;

// The extent of `count` cells of whole units that is about `target`.
int image_extent(int target, std::int64_t count) {
  return std::max(target / static_cast<int>(count), 1) * static_cast<int>(count);
}

void check_dimensions(FloatView encoding, std::span<const std::int64_t> dimensions) {
  figure::check_matrices("dimensions_figure", "encodings", encoding.shape(), 2);
  for (const std::int64_t dim : dimensions) {
    if (dim >= 0 && dim + 1 < encoding.extent(1)) continue;
    throw InvalidArgument(
        fmt::format("dimensions_figure: dimension {} and the next are not both of {}", dim,
                    encoding.extent(1)));
  }
  if (dimensions.empty()) throw InvalidArgument("dimensions_figure: there are no dimensions");
}

Curve curve_of(FloatView encoding, std::int64_t dim) {
  Curve curve{.name = fmt::format("dim {} ({})", dim, dim % 2 == 0 ? "sin" : "cos")};
  for (std::int64_t position = 0; position < encoding.extent(0); ++position) {
    curve.x.push_back(static_cast<double>(position));
    curve.y.push_back(encoding(position, dim));
  }
  return curve;
}

}  // namespace

Figure position_figure(FloatView encoding, const PositionFigureOptions& options) {
  figure::check_matrices("position_figure", "encodings", encoding.shape(), 2);
  const Grid grid = figure::pool(encoding.permute({1, 0}), {}, kImageHeight, true);
  figure::ColorRange range{.map = ColorMap::kRdBu,
                           .max = figure::largest_magnitude(grid),
                           .is_signed = true,
                           .theme = options.theme};
  if (range.max == 0) range.max = 1;
  Panel panel;
  panel.width = image_extent(kImageWidth, grid.columns);
  panel.height = image_extent(kImageHeight, grid.rows);
  panel.x = figure::category_axis("position", {{}, grid.columns, grid.column_block});
  panel.y = figure::category_axis("dimension", {{}, grid.rows, grid.row_block}, true);
  panel.cells = figure::color_cells(grid, range, -1);
  panel.color_bar = figure::color_bar(range, options.bar_title);
  return {.title = options.title,
          .note = figure::joined_notes(options.note, figure::pooling_note(grid)),
          .panels = {std::move(panel)},
          .theme = options.theme};
}

Figure dimensions_figure(FloatView encoding, std::span<const std::int64_t> dimensions,
                         const PositionFigureOptions& options) {
  check_dimensions(encoding, dimensions);
  Figure result{.title = options.title,
                .note = options.note,
                .columns = dimensions.size() == 1 ? 1 : 2,
                .theme = options.theme};
  const auto last = static_cast<double>(std::max<std::int64_t>(encoding.extent(0) - 1, 1));
  for (const std::int64_t dim : dimensions) {
    Panel panel{.title = fmt::format("dimensions {}, {}", dim, dim + 1),
                .width = kCurvesWidth,
                .height = kCurvesHeight,
                .x = figure::number_axis("position", 0, last),
                .y = figure::number_axis(options.bar_title, -1.1, 1.1, false, 5),
                .has_grid = true};
    panel.curves = {curve_of(encoding, dim), curve_of(encoding, dim + 1)};
    result.panels.push_back(std::move(panel));
  }
  return result;
}

}}  // namespace heed::v0
