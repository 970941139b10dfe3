// From a sentence to attention weights: what the verbs demo and explain share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/mask.h"
#include "heed/nn/functional.h"
#include "heed/tensor.h"

namespace heed::cli {

inline constexpr std::int64_t kMaxTokens = 512;

struct SentenceSettings {
  std::int64_t num_heads = 4;
  std::int64_t d_model = 64;
  std::uint64_t seed = 0;
  Mask mask = causal();
  double temperature = 1;  // the scores are divided by it
  bool has_positions = true;

  std::int64_t head_dim() const { return d_model / num_heads; }
};

struct SentenceAttention {
  std::string text;  // valid UTF-8
  SentenceSettings settings;
  std::vector<std::int64_t> token_ids;
  std::vector<std::string> labels;  // of the tokens, fit for a terminal
  Tensor<float> vectors;            // [num_tokens, d_model]: what attention is given
  AttentionParameters<float> parameters;
  Tensor<float> weights;  // [num_heads, num_tokens, num_tokens]
  Tensor<bool> visible;   // [num_tokens, num_tokens]

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(token_ids.size()); }
};

// Tokeniser (whitespace around the sentence is dropped), embedding, position encoding and
// multi-head self-attention, with freshly initialised parameters drawn from the seed. Throws
// InvalidArgument when the sentence is not valid UTF-8, has no words or is longer than kMaxTokens.
SentenceAttention attend(const std::string& text, const SentenceSettings& settings);

}  // namespace heed::cli
