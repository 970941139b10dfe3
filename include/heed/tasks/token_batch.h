/// Sequences of tokens to learn from, and what follows each token.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace tasks {

/// Sequences of one length, side by side.
struct TokenBatch {
  Tensor<std::int64_t> inputs;   ///< [batch, length]
  Tensor<std::int64_t> targets;  ///< what follows each token; nn::kIgnoreIndex: not to be predicted
};

}}}  // namespace heed::v0::tasks
