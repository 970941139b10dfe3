// The weights of a transformer, by role.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/checkpoint.h"
#include "heed/models/config.h"
#include "heed/models/model.h"
#include "heed/models/weight_matrix.h"

namespace heed { inline namespace v0 { namespace models {

// out = x · Wᵀ + bias.
struct Projection {
  WeightMatrix weight;
  Tensor<float> bias;  // [rows] or empty

  void apply(FloatView x, TensorView<float> out) const {
    weight.multiply(x, {bias.data(), static_cast<std::size_t>(bias.num_elements())}, out);
  }
};

// A layer norm, or an RMS norm, depending on the family.
struct Norm {
  Tensor<float> weight;
  Tensor<float> bias;  // empty if there is none
};

struct TransformerLayer {
  Norm attention_norm;  // before attention, for BERT after it
  Projection query, key, value, out;
  Norm mlp_norm;    // before the feed-forward layer, for BERT after it
  Projection gate;  // in gated layers only
  Projection up, down;
};

struct Model::Parts {
  ModelConfig config;
  std::unique_ptr<const text::Tokenizer> tokenizer;
  std::optional<Checkpoint> checkpoint;  // the source of the weights
  std::vector<std::string> tensors;      // the names of the tensors that are used

  WeightMatrix tokens;       // [vocab_size, hidden_size]
  WeightMatrix positions;    // [max_positions, hidden_size], or empty
  WeightMatrix token_types;  // [num_token_types, hidden_size], or empty
  Norm embedding_norm;       // BERT only
  std::vector<TransformerLayer> layers;
  Norm final_norm;  // decoders only
  Projection head;  // [vocab_size, hidden_size], shared with tokens if tied; or empty
};

}}}  // namespace heed::v0::models
