// x · Wᵀ, divided among threads.
#pragma once

#include <span>

#include "heed/tensor.h"
#include "models/kernels/weight_kernels.h"

namespace heed::inline v0::models {

// Rows of x up to which W is read as it is stored, once for each kMostInputRows of them. A product
// with 12, 16 and 24 rows and a Q4_1 matrix of 576 × 576 takes 161, 218 and 335 µs so, and 180, 211
// and 269 µs by BLAS (AVX2, one thread).
inline constexpr std::int64_t kFewInputRows = 16;

// out = x · Wᵀ (+ bias, unless it is empty). The rows of x [n, columns] and out [n, rows] are
// contiguous; the shapes fit. The bits depend on n and the kernels alone.
void multiply(const WeightKernels& kernels, const WeightRows& w, FloatView x,
              std::span<const float> bias, TensorView<float> out);

}  // namespace heed::inline v0::models
