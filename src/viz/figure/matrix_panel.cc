#include "viz/figure/matrix_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heed/core/error.h"
#include "viz/figure/scales.h"

namespace heed { inline namespace v0 { namespace figure {

namespace {

std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// True if `value` is shown rather than `shown`; kMasked is weaker than any number.
bool is_stronger(float value, float shown, bool is_signed) {
  if (std::isnan(shown)) return false;
  if (std::isnan(value) || shown == kMasked) return true;
  return is_signed ? std::abs(value) > std::abs(shown) : value > shown;
}

}  // namespace

Grid pool(FloatView matrix, TensorView<const bool> visible, std::int64_t max_extent,
          bool is_signed) {
  Grid grid;
  grid.row_block = ceil_divide(matrix.extent(0), max_extent);
  grid.column_block = ceil_divide(matrix.extent(1), max_extent);
  grid.rows = ceil_divide(matrix.extent(0), grid.row_block);
  grid.columns = ceil_divide(matrix.extent(1), grid.column_block);
  grid.values.assign(static_cast<std::size_t>(grid.rows * grid.columns), kMasked);
  const bool sees_all = visible.data() == nullptr;
  for (std::int64_t row = 0; row < matrix.extent(0); ++row) {
    float* line = grid.values.data() + row / grid.row_block * grid.columns;
    for (std::int64_t column = 0; column < matrix.extent(1); ++column) {
      if (!sees_all && !visible(row, column)) continue;
      float& shown = line[column / grid.column_block];
      const float value = matrix(row, column);
      if (is_stronger(value, shown, is_signed)) shown = value;
    }
  }
  return grid;
}

namespace {

constexpr int kMaxCell = 64;
constexpr int kMinNarrow =
    24;  // the largest extent of a cell in one direction if it has 1 in the other

int cell_extent(int target, std::int64_t count) {
  return std::clamp(target / static_cast<int>(count), 1, kMaxCell);
}

}  // namespace

void check_labels(std::string_view function, std::string_view what, std::size_t count,
                  std::int64_t extent) {
  if (count == 0 || static_cast<std::int64_t>(count) == extent) return;
  throw InvalidArgument(
      fmt::format("{}: {} {} labels were given for {}", function, count, what, extent));
}

void check_matrices(std::string_view function, std::string_view what, const Shape& shape,
                    int max_rank) {
  const bool fits = shape.rank() >= 2 && shape.rank() <= max_rank && shape.num_elements() > 0;
  if (fits) return;
  throw InvalidArgument(fmt::format("{}: {} are {}, expected {}[q_len, kv_len] with no extent of 0",
                                    function, what, to_string(shape),
                                    max_rank == 3 ? "[num_panels, q_len, kv_len] or " : ""));
}

std::int64_t default_columns(std::int64_t num_panels) {
  if (num_panels <= 3) return num_panels;
  if (num_panels <= 8) return num_panels % 4 == 0 ? 4 : 3;
  return std::min<std::int64_t>(
      8, static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(num_panels)))));
}

// The size at which a row of panels fits a page.
int target_extent(std::int64_t num_panels) {
  switch (default_columns(num_panels)) {
    case 1:
      return 440;
    case 2:
      return 340;
    case 3:
      return num_panels == 3 ? 260 : 220;
    case 4:
      return num_panels <= 8 ? 190 : 170;
    default:
      return 110;
  }
}

Panel matrix_panel(const Grid& grid, const MatrixNames& names, int target) {
  const int wide = cell_extent(target, grid.columns);
  const int high = cell_extent(target, grid.rows);
  const int both = std::max(std::min(wide, high), kMinNarrow);
  Panel panel;
  panel.width = std::min(wide, both) * static_cast<int>(grid.columns);
  panel.height = std::min(high, both) * static_cast<int>(grid.rows);
  panel.x = category_axis(names.key_title,
                          {names.keys, grid.columns, grid.column_block, names.first_key});
  panel.y = category_axis(names.query_title, {names.queries, grid.rows, grid.row_block}, true);
  return panel;
}

std::string pooling_note(const Grid& grid) {
  if (!grid.is_pooled()) return "";
  return fmt::format("Each cell is the strongest of {} × {} weights; its labels name the first.",
                     grid.row_block, grid.column_block);
}

std::string joined_notes(std::string first, std::string_view second) {
  if (!first.empty() && !second.empty()) first += ' ';
  return first.append(second);
}

}}}  // namespace heed::v0::figure
