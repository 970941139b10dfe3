/// Tokens and the weights with which they attend to each other: what is drawn of a sentence, and of
/// a layer of a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

/// What attention does, in numbers and words.
namespace heed { inline namespace v0 { namespace inspect {

/// What is shown has no more tokens than this.
inline constexpr std::int64_t kMaxTokens = 512;

/// Self-attention of several heads over a text.
struct AttendedTokens {
  std::string text;  ///< valid UTF-8
  std::vector<std::int64_t> token_ids;
  std::vector<std::string> labels;  ///< of the tokens, fit for a terminal
  Tensor<float> weights;            ///< [num_heads, num_tokens, num_tokens]
  Tensor<bool> visible;             ///< [num_tokens, num_tokens]: who sees whom

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(token_ids.size()); }
  std::int64_t num_heads() const { return weights.extent(0); }
};

}}}  // namespace heed::v0::inspect
