#include <fmt/format.h>

#include <algorithm>

#include "heed/core/error.h"
#include "heed/viz/attention_figure.h"
#include "viz/figure/axis.h"
#include "viz/figure/color_scale.h"
#include "viz/figure/matrix_panel.h"

namespace heed { inline namespace v0 {
namespace {

using figure::Grid;

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
