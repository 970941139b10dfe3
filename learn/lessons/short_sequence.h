// The example of the lesson short-sequence.
#pragma once

#include <cstdint>

#include "heed/core/tensor.h"
#include "heed/nn/functional.h"

namespace heed::learn {

// Four heads over ten tokens of width 64 with positions under a causal mask, as PyTorch draws it
// after manual_seed(0): one joint projection for query, key and value, and no biases.
struct ShortSequence {
  ShortSequence();

  AttentionParameters<float> parameters;
  Tensor<float> x;  // [1, 10, 64]
  MultiHeadOutput<float> attended;
};

}  // namespace heed::learn
