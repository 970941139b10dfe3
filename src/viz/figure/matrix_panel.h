// Common parts of matrix figures: checks, sizes, labels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"
#include "viz/figure/pool.h"

namespace heed { inline namespace v0 { namespace figure {

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
