// Products of stored weights in plain loops.
#include <vector>

#include "models/kernels/weight_kernels.h"
#include "models/weight_product.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

void sum_blocks_plainly(const float* x, std::int64_t count, float* sums) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    float sum = 0;
    for (std::int64_t j = 0; j < kWeightBlock; ++j) sum += x[i + j];
    *sums++ = sum;
  }
}

void multiply_plainly(const WeightRows& w, const InputRows& x, float* out,
                      std::int64_t out_stride) {
  std::vector<float> row(static_cast<std::size_t>(w.columns));
  std::vector<std::byte> stored(static_cast<std::size_t>(w.row_bytes));
  for (std::int64_t r = 0; r < w.num_rows; ++r) {
    decode(w.type, stored_columns(w, r, 0, w.columns, stored.data()), w.columns, row.data());
    for (std::int64_t i = 0; i < x.num_rows; ++i) {
      float sum = 0;
      for (std::int64_t c = 0; c < w.columns; ++c) {
        sum += x.data[i * x.stride + c] * row[static_cast<std::size_t>(c)];
      }
      out[i * out_stride + r] = sum;
    }
  }
}

}  // namespace

const WeightKernels& plain_weight_kernels() {
  static constexpr WeightKernels kKernels{.name = "reference",
                                          .decode = decode,
                                          .sum_blocks = sum_blocks_plainly,
                                          .multiply = multiply_plainly,
                                          .panel_rows = 16,
                                          .multiply_panel = multiply_plainly};
  return kKernels;
}

}}}  // namespace heed::v0::models
