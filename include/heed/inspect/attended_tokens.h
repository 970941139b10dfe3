/// The tokens of a text and the attention weights between them, as figures and pages draw them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

/// Attention in numbers and words.
namespace heed { inline namespace v0 { namespace inspect {

/// The most tokens that are drawn.
inline constexpr std::int64_t kMaxTokens = 512;

/// Self-attention of several heads over a text.
struct AttendedTokens {
  std::string text;  ///< valid UTF-8
  std::vector<std::int64_t> token_ids;
  std::vector<std::string> labels;  ///< of the tokens, without control characters
  Tensor<float> weights;            ///< [num_heads, num_tokens, num_tokens]
  Tensor<bool> visible;             ///< [num_tokens, num_tokens]: true where a query sees a key

  std::int64_t num_tokens() const { return static_cast<std::int64_t>(token_ids.size()); }
  std::int64_t num_heads() const { return weights.extent(0); }
};

}}}  // namespace heed::v0::inspect
