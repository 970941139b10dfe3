// A small language model: what comes next, given what came before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/nn/attention_layers.h"
#include "heed/nn/embedding_layers.h"
#include "heed/nn/layers.h"
#include "train/settings.h"

namespace heed::cli {

// x + attention(norm(x)), then x + feed_forward(norm(x)). Attention is causal.
class CausalBlock : public nn::Layer<> {
 public:
  CausalBlock(std::int64_t d_model, std::int64_t heads);
  nn::Variable<> forward(const nn::Variable<>& x) override;
  std::string class_name() const override { return "CausalBlock"; }

 private:
  nn::LayerNorm<>& attention_norm_;
  nn::MultiHeadAttention<>& attention_;
  nn::LayerNorm<>& feed_forward_norm_;
  nn::Linear<>& widen_;
  nn::Linear<>& narrow_;
};

// Embedding, positions, blocks, projection to the vocabulary.
class CausalModel : public nn::Module<> {
 public:
  explicit CausalModel(const ModelSettings& settings);

  // ids [batch, length] to logits [batch, length, vocab_size].
  nn::Variable<> forward(TensorView<const std::int64_t> ids);

  // The longest input, which positions limit.
  std::int64_t max_length() const noexcept { return max_length_; }
  std::string class_name() const override { return "CausalModel"; }

 private:
  nn::TokenEmbedding<>& tokens_;
  nn::Layer<>* positions_ = nullptr;
  std::vector<CausalBlock*> blocks_;
  nn::LayerNorm<>* norm_ = nullptr;
  nn::Linear<>* out_ = nullptr;
  std::int64_t max_length_;
};

}  // namespace heed::cli
