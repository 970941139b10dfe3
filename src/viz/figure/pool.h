// Reduces a matrix to a size that can be drawn.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace figure {

inline constexpr float kMasked = -std::numeric_limits<float>::infinity();

// One value per cell, each the strongest of a block of row_block × column_block.
struct Grid {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_block = 1;
  std::int64_t column_block = 1;
  std::vector<float> values;  // row-major; kMasked if all cells of the block are masked

  bool is_pooled() const { return row_block > 1 || column_block > 1; }
};

// Reduces the matrix to at most max_extent rows and columns. The value of a block is its largest
// visible one, by magnitude if `is_signed`; NaN is stronger than any number. `visible` has the
// matrix's shape, or is empty if all cells are visible.
Grid pool(FloatView matrix, TensorView<const bool> visible, std::int64_t max_extent,
          bool is_signed);

}}}  // namespace heed::v0::figure
