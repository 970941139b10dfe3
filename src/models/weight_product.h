// x · Wᵀ, divided among threads.
#pragma once

#include <span>

#include "heed/tensor.h"
#include "models/kernels/weight_kernels.h"

namespace heed::inline v0::models {

// Rows of x up to which W is read as it is stored, once for each kMostInputRows of them.
inline constexpr std::int64_t kFewInputRows = 8;

// out = x · Wᵀ (+ bias, unless it is empty). The rows of x [n, columns] and out [n, rows] are
// contiguous; the shapes fit. The bits depend on n and the kernels alone.
void multiply(const WeightKernels& kernels, const WeightRows& w, FloatView x,
              std::span<const float> bias, TensorView<float> out);

}  // namespace heed::inline v0::models
