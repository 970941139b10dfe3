/// Queries, keys, values and weights of a trained model for a text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"
#include "heed/inspect/attended_tokens.h"
#include "heed/inspect/model_heads.h"
#include "heed/models/model.h"

namespace heed { inline namespace v0 { namespace inspect {

/// Queries, keys, values and weights of a layer, as its attention uses them.
struct ReadLayer {
  Tensor<float> query;           ///< [num_heads, num_tokens, head_dim], rotary embedding applied
  Tensor<float> key;             ///< [num_kv_heads, num_tokens, head_dim], rotary embedding applied
  Tensor<float> value;           ///< [num_kv_heads, num_tokens, head_dim]
  Tensor<float> weights;         ///< [num_heads, num_tokens, num_tokens]
  Mask mask;                     ///< of all heads
  Tensor<bool> visible;          ///< [num_tokens, num_tokens]: the mask as booleans
  std::optional<float> scale;    ///< of query · key; 1/√head_dim when not given
  float softcap = 0;             ///< of scores; 0: none
  bool has_other_terms = false;  ///< biases, ALiBi or sinks: query and key alone give other weights
};

/// All layers of one text, or of a pair of texts.
struct ModelReading {
  std::string text;      ///< both texts of a pair, with " / " between them
  ModelText input;       ///< its tokens, their labels and words
  Tensor<bool> visible;  ///< [num_tokens, num_tokens]: keys that a query sees in any layer
  std::vector<ReadLayer> layers;

  /// A layer as figures draw it. @throws InvalidArgument when the layer does not exist.
  HEED_API AttendedTokens tokens_of(std::int64_t layer) const;
};

/// Runs a model over a text, or over a pair of texts, and records all layers.
/// @throws InvalidArgument when a text is not valid UTF-8, or has no tokens or more than
/// kMaxTokens.
HEED_API ModelReading read_layers(const models::Model& model, const std::string& text,
                                  const std::optional<std::string>& pair = std::nullopt);

}}}  // namespace heed::v0::inspect
