// x · Wᵀ, divided among threads.
#pragma once

#include <span>

#include "heed/core/tensor.h"
#include "models/kernels/weight_kernels.h"

namespace heed { inline namespace v0 { namespace models {

// Rows of x up to which W is read as it is stored, once for each kMostInputRows of them. A product
// with a Q4_1 matrix of 576 × 576 runs at 50 GFLOP/s so, with 12 or 16 rows, and at 60 and 69 with
// 17 and 24 rows and W decoded (AVX2, one thread).
inline constexpr std::int64_t kFewInputRows = 12;

// out = x · Wᵀ (+ bias, unless it is empty). The rows of x [n, columns] and out [n, rows] are
// contiguous; the shapes fit. The bits of a row depend on it, the kernels and whether n is at most
// kFewInputRows alone.
void multiply(const WeightKernels& kernels, const WeightRows& w, FloatView x,
              std::span<const float> bias, TensorView<float> out);

}}}  // namespace heed::v0::models
