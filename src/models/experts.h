// Feed-forward layers, one for all tokens or a few experts for each.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/config.h"
#include "models/graph.h"

namespace heed { inline namespace v0 { namespace models {

// gate = activation(mlp.gate(input)) · mlp.up(input), or without a gate activation(mlp.up(input)),
// in which case `up` is not used. The rows of both are those of the input.
void widen(const FeedForward& mlp, Activation activation, FloatView input, Tensor<float>& gate,
           Tensor<float>& up);

// The tokens of an expert, and the weight of its result for each.
struct ExpertTokens {
  std::vector<std::int64_t> tokens;
  std::vector<float> weights;
};

// Chooses experts for each row of scores [tokens, experts.count]: those of the largest ones, of
// equal ones the first. Returns what each expert computes.
std::vector<ExpertTokens> choose_experts(FloatView scores, const Experts& experts);

// Σ weight · expert(input) over the experts of each token, in their order, [tokens, hidden_size].
Tensor<float> mix_experts(const TransformerLayer& layer, const ModelConfig& config,
                          FloatView input);

}}}  // namespace heed::v0::models
