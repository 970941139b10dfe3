/// A small language model that heed trains: it predicts the next token from the tokens before it.
///
///     heed::models::CausalTransformer model({.vocab_size = 64, .positions = "rotary"});
///     const auto logits = model.forward(ids);  // [batch, length, 64]
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "heed/attention/kv_cache.h"
#include "heed/attention/mask.h"
#include "heed/attention/select_blocks.h"
#include "heed/core/config.h"
#include "heed/models/causal_config.h"
#include "heed/nn/attention_layers.h"
#include "heed/nn/embedding_layers.h"
#include "heed/nn/layers.h"
#include "heed/nn/past.h"

namespace heed { inline namespace v0 { namespace models {

/// How the blocks of a model attend, besides hiding later keys.
struct AttentionKind {
  Mask mask = {};  ///< the visible ones of the keys up to the query's own
  std::optional<SelectBlocksOptions> selected_blocks = std::nullopt;
  /// Linear attention, by products of features instead of a softmax; without mask and selection.
  bool is_linear = false;
};

/// A block: x + attention(norm(x)), then x + feed_forward(norm(x)), of x [batch, length, d_model].
/// Attention is causal; feed_forward(x) = narrow(relu(widen(x))), four times as wide inside.
class HEED_API CausalBlock : public nn::Layer<> {
 public:
  CausalBlock(const nn::AttentionConfig& attention, const AttentionKind& kind);
  nn::Variable<> forward(const nn::Variable<>& x) override;
  /// forward() of positions that follow those in `pasts`, which has one for each text.
  nn::Variable<> continued(std::span<KvSequence> pasts, const nn::Variable<>& x);
  KvSequence make_past() const { return attention_.make_past(); }
  std::string class_name() const override { return "CausalBlock"; }

 private:
  nn::Variable<> feed_forward(const nn::Variable<>& x);

  Mask mask_;
  nn::LayerNorm<>& attention_norm_;
  nn::MultiHeadAttention<>& attention_;
  nn::LayerNorm<>& feed_forward_norm_;
  nn::Linear<>& widen_;
  nn::Linear<>& narrow_;
};

/// Embedding, positions, blocks, a final norm and a projection to the vocabulary. Parameters are
/// drawn from default_generator().
class HEED_API CausalTransformer : public nn::Module<> {
 public:
  /// A model with the mask of the configuration.
  /// @throws InvalidArgument when parse_mask() does not accept the mask, or a layer cannot have
  /// these sizes; check_config() reports errors beforehand.
  explicit CausalTransformer(const CausalConfig& config);
  CausalTransformer(const CausalConfig& config, const AttentionKind& kind);

  /// From ids [batch, length] to logits [batch, length, vocab_size].
  /// @throws InvalidArgument when an id is not in the vocabulary, or length > max_length().
  nn::Variable<> forward(TensorView<const std::int64_t> ids);

  /// A past of one text without tokens, with a sequence for each block.
  nn::Past make_past() const;
  nn::Past make_past(KvPool& pool) const;
  /// The configuration of a pool for pasts of this model.
  KvConfig cache_config() const { return blocks_.front()->make_past().config(); }
  /// The logits [texts, length, vocab_size] of ids [texts, length] that follow those in `past`, and
  /// appends them to it; on an error nothing is appended. @throws InvalidArgument as forward(),
  /// OutOfPages.
  nn::Variable<> continued(nn::Past& past, TensorView<const std::int64_t> ids);

  /// The longest input, which the positions limit.
  std::int64_t max_length() const noexcept { return max_length_; }
  std::string class_name() const override { return "CausalTransformer"; }

 private:
  nn::Variable<> logits(const nn::Variable<>& x);

  nn::TokenEmbedding<>& tokens_;
  // x plus the vectors of the positions from `first` on.
  std::function<nn::Variable<>(const nn::Variable<>& x, std::int64_t first)> add_positions_;
  std::vector<CausalBlock*> blocks_;
  nn::LayerNorm<>* norm_ = nullptr;
  nn::Linear<>* out_ = nullptr;
  std::int64_t max_length_;
};

}}}  // namespace heed::v0::models
