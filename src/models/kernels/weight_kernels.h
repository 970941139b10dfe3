// For each instruction set products of rows of numbers with stored weights, and the conversion of
// stored weights to floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/models/checkpoint.h"
#include "models/formats/block_formats.h"

namespace heed { inline namespace v0 { namespace models {

// The elements of a row that share a scale, in the types with scales whose products read stored
// elements.
inline constexpr std::int64_t kWeightBlock = 32;

// The most rows of numbers that one pass over the weights multiplies.
inline constexpr std::int64_t kMostInputRows = 4;

// Rows per group of 4-bit weights; weight_product.h describes the layout.
inline constexpr std::int64_t kGroupRows = 16;

// Rows of a weight matrix, consecutive as in files, or in groups.
struct WeightRows {
  WeightType type = WeightType::kFloat32;
  const std::byte* bytes = nullptr;  // the first byte of row 0, of any alignment
  std::int64_t first_row = 0;        // the first row of this range, counted from row 0
  std::int64_t num_rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_bytes = 0;
  bool is_grouped = false;

  WeightRows slice(std::int64_t first, std::int64_t last) const {
    WeightRows result = *this;
    result.first_row += first;
    result.num_rows = last - first;
    return result;
  }
  // A row that is not in a group.
  const std::byte* row(std::int64_t index) const { return bytes + (first_row + index) * row_bytes; }
};

// Rows of numbers: row i begins at data + i · stride.
struct InputRows {
  const float* data = nullptr;
  std::int64_t num_rows = 0;
  std::int64_t stride = 0;
  // Only for weights in groups: the numbers in the order of arrange_numbers(), [num_rows][columns],
  // and their sums over each block, [num_rows][columns / kWeightBlock].
  const float* arranged = nullptr;
  const float* block_sums = nullptr;
  std::int64_t columns = 0;

  InputRows slice(std::int64_t first, std::int64_t last) const {
    InputRows result = *this;
    result.data += first * stride;
    result.num_rows = last - first;
    if (arranged != nullptr) result.arranged += first * columns;
    if (block_sums != nullptr) result.block_sums += first * (columns / kWeightBlock);
    return result;
  }
};

struct WeightKernels {
  const char* name;  // the name of attention's kernels for the same instruction set

  // out[i] = stored element i, equal to models::decode() in every bit.
  void (*decode)(WeightType type, const std::byte* bytes, std::int64_t count, float* out);

  // sums[b] = Σ x over the b-th kWeightBlock numbers.
  void (*sum_blocks)(const float* x, std::int64_t count, float* sums);

  // out[i · out_stride + r] = Σ_c x[i][c] · w[r][c] for at most kMostInputRows rows of x, for types
  // that multiply as they are stored; their 4-bit weights are in groups. A result does not depend
  // on which rows are computed with it.
  //
  // Quantised weights are not rounded to floats: the sum of q · x over a block is multiplied by the
  // scale, and the sum of x by the minimum. The error has as many roundings as if weights were
  // decoded first; with a minimum, they are of numbers up to twice as large.
  void (*multiply)(const WeightRows& w, const InputRows& x, float* out, std::int64_t out_stride);

  // The same product for any number of rows of x and at most panel_rows of w, which are converted
  // to floats first.
  std::int64_t panel_rows;
  void (*multiply_panel)(const WeightRows& w, const InputRows& x, float* out,
                         std::int64_t out_stride);
};

// The kernels in plain loops.
const WeightKernels& plain_weight_kernels();

// The kernels that this processor supports, the best first, the plain ones last.
const std::vector<const WeightKernels*>& supported_weight_kernels();

// The kernels for the instruction set that attention uses, which HEED_TARGET may set. Throws
// InvalidArgument as attention does.
const WeightKernels& weight_kernels_in_use();

}}}  // namespace heed::v0::models
