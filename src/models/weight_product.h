// x · Wᵀ, divided among threads.
#pragma once

#include <span>

#include "heed/core/tensor.h"
#include "models/kernels/weight_kernels.h"

namespace heed { inline namespace v0 { namespace models {

// The most rows of x for which W is read in its stored form, once for each kMostInputRows of them.
// A product with a Q4_1 matrix of 576 × 576 then runs at 50 GFLOP/s, with 12 or 16 rows; with W
// decoded, at 60 and 69 with 17 and 24 rows (AVX2, one thread).
inline constexpr std::int64_t kFewInputRows = 12;

// out = x · Wᵀ (+ bias, unless it is empty). The rows of x [n, columns] and out [n, rows] are
// contiguous; the shapes fit. A row of the result depends only on the row of x, the kernels and
// whether n is at most kFewInputRows.
void multiply(const WeightKernels& kernels, const WeightRows& w, FloatView x,
              std::span<const float> bias, TensorView<float> out);

}}}  // namespace heed::v0::models
