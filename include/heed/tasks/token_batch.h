/// Batches of token sequences and their targets.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace tasks {

/// Sequences of one length.
struct TokenBatch {
  Tensor<std::int64_t> inputs;   ///< [batch, length]
  Tensor<std::int64_t> targets;  ///< [batch, length], the next tokens; nn::kIgnoreIndex: no target
};

}}}  // namespace heed::v0::tasks
