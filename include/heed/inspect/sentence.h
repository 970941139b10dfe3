/// Attention weights of a sentence with random parameters. They show how attention works, not what
/// a trained model computes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/inspect/attended_tokens.h"
#include "heed/nn/functional.h"

namespace heed { inline namespace v0 { namespace inspect {

/// Settings of attend().
struct SentenceSettings {
  std::int64_t num_heads = 4;
  std::int64_t d_model = 64;  ///< a multiple of num_heads; even with positions
  std::uint64_t seed = 0;     ///< of embedding and parameters
  Mask mask = causal();
  /// The scores are divided by it. 0: all of a row's weight goes to its largest score, in equal
  /// parts to several.
  double temperature = 1;
  bool has_positions = true;

  std::int64_t head_dim() const { return d_model / num_heads; }
};

/// The result of attend(), with its intermediate results.
struct SentenceAttention : AttendedTokens {
  SentenceSettings settings;
  Tensor<float> vectors;  ///< [num_tokens, d_model]: the input of attention
  AttentionParameters<float> parameters;
};

/// Applies a tokeniser (whitespace around the sentence is removed), embedding, position encoding
/// and multi-head self-attention to a sentence, with random parameters initialised from the seed.
/// @throws InvalidArgument when the sentence is not valid UTF-8, has no words or is longer than
/// kMaxTokens, or the settings do not fit together.
HEED_API SentenceAttention attend(const std::string& text, const SentenceSettings& settings = {});

}}}  // namespace heed::v0::inspect
