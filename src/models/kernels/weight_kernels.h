// Products of rows of numbers with stored weights, and stored weights as floats, on each
// instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "heed/models/checkpoint.h"
#include "models/weight_format.h"

namespace heed { inline namespace v0 { namespace models {

// The most rows of numbers that are multiplied in one pass over the weights.
inline constexpr std::int64_t kMostInputRows = 4;

// Rows of a group of weights of four bits: weight_groups.h says how they lie.
inline constexpr std::int64_t kGroupRows = 16;

// Rows of a matrix of weights, one behind the other as files have them, or in groups.
struct WeightRows {
  WeightType type = WeightType::kFloat32;
  const std::byte* bytes = nullptr;  // of row 0, of any alignment
  std::int64_t first_row = 0;        // that is meant, counted from there
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

// Rows of numbers: row i is at data + i · stride.
struct InputRows {
  const float* data = nullptr;
  std::int64_t num_rows = 0;
  std::int64_t stride = 0;
  // For weights in groups alone: the numbers as arrange_numbers() has them, [num_rows][columns],
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
  const char* name;  // as the table of attention's kernels for the same instruction set is called

  // out[i] = the element that is stored at place i: the bits of models::decode().
  void (*decode)(WeightType type, const std::byte* bytes, std::int64_t count, float* out);

  // sums[b] = Σ x over the b-th kWeightBlock numbers.
  void (*sum_blocks)(const float* x, std::int64_t count, float* sums);

  // out[i · out_stride + r] = Σ_c x[i][c] · w[r][c] for at most kMostInputRows rows of x; weights
  // of four bits are in groups. A result has the same bits whatever rows are computed beside it.
  //
  // Quantised weights are not rounded to floats: the sum of q · x over a block is multiplied by the
  // scale, and that of x by the minimum. The error is of as many roundings as decoding first would
  // take, where there is a minimum of numbers up to twice as large.
  void (*multiply)(const WeightRows& w, const InputRows& x, float* out, std::int64_t out_stride);

  // The same for any number of rows of x and at most panel_rows of w, which become floats first.
  std::int64_t panel_rows;
  void (*multiply_panel)(const WeightRows& w, const InputRows& x, float* out,
                         std::int64_t out_stride);
};

// In plain loops.
const WeightKernels& plain_weight_kernels();

// Those of this processor, the best first, and the plain ones last.
const std::vector<const WeightKernels*>& supported_weight_kernels();

// Those of the instruction set that attention uses, which HEED_TARGET may name. Throws
// InvalidArgument as attention does.
const WeightKernels& weight_kernels_in_use();

}}}  // namespace heed::v0::models
