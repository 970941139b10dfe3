// The choice of experts for tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/config.h"

namespace heed { inline namespace v0 { namespace models {

// The tokens of an expert, and the weight of its result for each.
struct ExpertTokens {
  std::vector<std::int64_t> tokens;
  std::vector<float> weights;
};

// Chooses experts for each row of scores [tokens, experts.count]: those of the largest ones, of
// equal ones the first. Returns what each expert computes.
std::vector<ExpertTokens> choose_experts(FloatView scores, const Experts& experts);

}}}  // namespace heed::v0::models
