/// From a sentence to attention weights with random parameters: how attention works, not what a
/// trained model knows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/config.h"
#include "heed/mask.h"
#include "heed/nn/functional.h"
#include "heed/tensor.h"

namespace heed::inline v0::inspect {

/// A sentence has no more tokens than this.
inline constexpr std::int64_t kMaxTokens = 512;

/// How the tokens of a sentence attend.
struct SentenceSettings {
  std::int64_t num_heads = 4;
  std::int64_t d_model = 64;  ///< a multiple of num_heads; with positions even
  std::uint64_t seed = 0;     ///< draws embedding and parameters
  Mask mask = causal();
  double temperature = 1;  ///< the scores are divided by it
  bool has_positions = true;

  std::int64_t head_dim() const { return d_model / num_heads; }
};

/// All that was computed on the way.
struct SentenceAttention {
  std::string text;  ///< valid UTF-8
  SentenceSettings settings;
  std::vector<std::int64_t> token_ids;
  std::vector<std::string> labels;  ///< of the tokens, fit for a terminal
  Tensor<float> vectors;            ///< [num_tokens, d_model]: what attention is given
  AttentionParameters<float> parameters;
  Tensor<float> weights;  ///< [num_heads, num_tokens, num_tokens]
  Tensor<bool> visible;   ///< [num_tokens, num_tokens]

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(token_ids.size()); }
};

/// Tokeniser (whitespace around the sentence is dropped), embedding, position encoding and
/// multi-head self-attention, with freshly initialised parameters drawn from the seed.
/// @throws InvalidArgument when the sentence is not valid UTF-8, has no words or is longer than
/// kMaxTokens, or the settings do not fit together.
HEED_API SentenceAttention attend(const std::string& text, const SentenceSettings& settings = {});

}  // namespace heed::inline v0::inspect
