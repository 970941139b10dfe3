/// The position of a score.
#pragma once

#include <cstdint>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// One cell of the score tensor [batch, num_heads, q_len, kv_len]. `q_idx` counts from the start of
/// the sequence: it includes AttentionOptions::query_offset.
struct ScorePosition {
  std::int32_t batch = 0;
  std::int32_t head = 0;
  std::int32_t q_idx = 0;
  std::int32_t kv_idx = 0;
};

}}  // namespace heed::v0
