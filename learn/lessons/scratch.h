// The example of the lessons from-scratch and causal.
#pragma once

#include <cstdint>

#include "heed/core/tensor.h"

namespace heed::learn {

// Tokens x [seq_len, 4] and projections to [seq_len, 2], drawn from NumPy's generator with seed 42
// in the order x, W_q, W_k, W_v. The weights have standard deviation 0.5.
struct ScratchExample {
  explicit ScratchExample(std::int64_t seq_len);

  Tensor<double> x;
  Tensor<double> query_weight;  // [4, 2], to be multiplied from the right: x · query_weight
  Tensor<double> key_weight;
  Tensor<double> value_weight;
  Tensor<double> query;  // [1, 1, seq_len, 2]
  Tensor<double> key;
  Tensor<double> value;
};

}  // namespace heed::learn
