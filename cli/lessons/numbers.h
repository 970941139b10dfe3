// What several lessons read off tensors.
#pragma once

#include <cstdint>
#include <string>

#include "heed/tensor.h"

namespace heed::cli {

// The largest |a − b| of two tensors of one shape.
double max_difference(FloatView a, FloatView b);

struct Spread {
  double mean = 0;
  double deviation = 0;  // the standard deviation of a sample, divided by n − 1
};
Spread spread(FloatView values);

double largest(FloatView values);

// A vector as "[0.8995, 0.1005]".
std::string list(FloatView vector, int decimals = 4);

// The matrix [q_len, kv_len] of one batch entry and head of `scores`, which must outlive it.
FloatView matrix_of(const Tensor<float>& scores, std::int64_t batch = 0, std::int64_t head = 0);

}  // namespace heed::cli
