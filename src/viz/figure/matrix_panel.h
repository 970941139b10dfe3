// Common parts of matrix figures: checks, sizes, labels, and matrices of a size that can be drawn.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"

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

// Throws InvalidArgument unless there are no labels or `extent` of them.
void check_labels(std::string_view function, std::string_view what, std::size_t count,
                  std::int64_t extent);

// Throws InvalidArgument unless the shape has one of the two ranks and no extent of 0.
void check_matrices(std::string_view function, std::string_view what, const Shape& shape,
                    int max_rank);

// The names of queries and keys.
struct MatrixNames {
  std::span<const std::string> queries = {};
  std::span<const std::string> keys = {};
  std::string query_title;
  std::string key_title;
  std::int64_t first_key = 0;  // the number of the first key, if keys are numbered
};

// The largest size of the plots in a figure with `num_panels` matrices.
int target_extent(std::int64_t num_panels);

// The number of panels per row that looks best.
std::int64_t default_columns(std::int64_t num_panels);

// A panel for the grid with its axes; each cell is a whole number of units wide and high. The
// caller sets the cells themselves.
Panel matrix_panel(const Grid& grid, const MatrixNames& names, int target);

// The note about pooling for a figure; empty if the grid is not pooled.
std::string pooling_note(const Grid& grid);

// Joins sentences.
std::string joined_notes(std::string first, std::string_view second);

}}}  // namespace heed::v0::figure
