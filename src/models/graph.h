// The weights of a transformer, by role; a forward pass through all layers, and the loss of what it
// predicts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/models/checkpoint.h"
#include "heed/models/config.h"
#include "heed/models/model.h"
#include "heed/models/weight_matrix.h"
#include "heed/nn/past.h"

namespace heed { inline namespace v0 { namespace models {

// out = x · Wᵀ + bias.
struct Projection {
  WeightMatrix weight;
  Tensor<float> bias;  // [rows] or empty

  void apply(FloatView x, TensorView<float> out) const {
    weight.multiply(x, {bias.data(), static_cast<std::size_t>(bias.num_elements())}, out);
  }
};

// A layer norm or an RMS norm, as the configuration says.
struct Norm {
  Tensor<float> weight;  // [size], or [heads, size]: heads have weights of their own
  Tensor<float> bias;    // empty if there is none
};

// Norms around a part of a layer, x = after_sum(x + after(part(before(x)))). Those whose weight is
// empty are left out.
struct PartNorms {
  Norm before, after, after_sum;
};

struct FeedForward {
  Projection gate;  // or empty
  Projection up, down;

  bool is_gated() const { return gate.weight.rows() > 0; }
};

struct TransformerLayer {
  PartNorms attention_norms;
  Projection query, key, value, out;
  Norm query_norm, key_norm;  // or empty
  PartNorms cross_norms;
  Projection cross_query, cross_key, cross_value, cross_out;  // of decoders with an encoder
  PartNorms mlp_norms;
  FeedForward mlp;  // or, with experts:
  Projection router;
  std::vector<FeedForward> experts;

  bool has_source() const { return cross_query.weight.rows() > 0; }
  // Calls use(projection) for each.
  template <class Use>
  void for_each_projection(const Use& use) const {
    for (const Projection* part : {&query, &key, &value, &out, &cross_query, &cross_key,
                                   &cross_value, &cross_out, &router}) {
      use(*part);
    }
    const auto use_all = [&](const FeedForward& layer) {
      for (const Projection* part : {&layer.gate, &layer.up, &layer.down}) use(*part);
    };
    use_all(mlp);
    for (const FeedForward& expert : experts) use_all(expert);
  }
};

struct Model::Parts {
  ModelConfig config;
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::optional<Checkpoint> checkpoint;            // the source of the weights
  std::vector<std::string> tensors;                // the names of the tensors that are used
  std::filesystem::path path;                      // as load() took it
  std::vector<std::filesystem::path> small_files;  // the configuration and the tokenizer

  std::shared_ptr<const Parts> encoder;  // if config.encoder is there; it has the same tokens
  // The columns are those of embeddings, hidden_size unless the configuration has another width.
  WeightMatrix tokens;              // [vocab_size, columns]
  WeightMatrix positions;           // [max_positions, columns], or empty
  WeightMatrix token_types;         // [num_token_types, columns], or empty
  Norm embedding_norm;              // or empty
  Projection embedding_projection;  // of embeddings of another width; or empty
  Tensor<float> position_bias;      // [num_heads, config.position_buckets->count], or empty
  std::vector<TransformerLayer> layers;
  Norm final_norm;  // or empty
  Projection head;  // [vocab_size, hidden_size], shared with tokens if tied; or empty

  std::vector<Projection> dense;  // of config.pooling->dense
  std::vector<Checkpoint> dense_checkpoints;

  mutable std::mutex hash_mutex;
  mutable std::string hash;  // of the files, empty until Model::sha256() is called
};

// The tokens of a pass: of whole texts, or of one text that continues a past.
struct PassInputs {
  std::span<const std::int64_t> ids;
  std::span<const std::int64_t> boundaries;  // the texts' first tokens, and the total
  std::span<const std::int64_t> type_ids;    // may be empty
  nn::Past* past = nullptr;
  const Source* source = nullptr;

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t num_texts() const noexcept {
    return static_cast<std::int64_t>(boundaries.size()) - 1;
  }
};

// Throws InvalidArgument as Model::forward does.
void check_inputs(const char* function, const ModelConfig& config, const PassInputs& inputs);

// Hidden states [tokens, hidden_size] after the last layer and norm. The inputs must be checked.
Tensor<float> run_graph(const Model::Parts& parts, const PassInputs& inputs,
                        const ForwardOptions& options);

// Applies a norm to every run of `size` elements; those of a norm with weights of several heads
// belong to them in turn. out may be x. Does nothing if the norm is empty.
void apply_norm(const Norm& norm, const ModelConfig& config, FloatView x, TensorView<float> out);

// Σ −ln p(ids[t] | ids before it), in nats, over the tokens first ≤ t < ids.size(), with first ≥ 1.
// `hidden` [ids.size(), embed_dim] holds the model's hidden states for all ids.
double sum_of_losses(const Model& model, FloatView hidden, std::span<const std::int64_t> ids,
                     std::int64_t first);

}}}  // namespace heed::v0::models
