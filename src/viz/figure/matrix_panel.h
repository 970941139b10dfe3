// What the figures of matrices share: checks, sizes, labels.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"
#include "viz/figure/pool.h"

namespace heed { inline namespace v0 { namespace figure {

// Throws InvalidArgument unless `count` labels are none or one for each of `extent`.
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
  std::int64_t first_key = 0;  // the number of the first, where keys are numbered
};

// How large the plots of one figure with so many panels of matrices are at most.
int target_extent(std::int64_t num_panels);

// Panels next to each other as they look best.
std::int64_t default_columns(std::int64_t num_panels);

// A panel for the grid with its axes, whose cells are a whole number of units in each direction;
// the cells themselves are the caller's.
Panel matrix_panel(const Grid& grid, const MatrixNames& names, int target);

// What the note of a figure says of pooled grids; empty for others.
std::string pooling_note(const Grid& grid);

// Sentences one after another.
std::string joined_notes(std::string first, std::string_view second);

}}}  // namespace heed::v0::figure
