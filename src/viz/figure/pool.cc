#include "viz/figure/pool.h"

#include <algorithm>
#include <cmath>

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

}}}  // namespace heed::v0::figure
