/// Sequences of tokens to learn from, and what follows each token.
#pragma once

#include <cstdint>

#include "heed/config.h"
#include "heed/tensor.h"

namespace heed::inline v0::tasks {

/// Sequences of one length, side by side.
struct TokenBatch {
  Tensor<std::int64_t> inputs;   ///< [batch, length]
  Tensor<std::int64_t> targets;  ///< what follows each token; nn::kIgnoreIndex: not to be predicted
};

}  // namespace heed::inline v0::tasks
