#include "heed/models/causal_transformer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/float_environment.h"
#include "heed/attention/mask_text.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// The least number of positions for encodings that are not learned: enough for four times a context
// of 512.
constexpr std::int64_t kLongest = 2048;

std::int64_t longest_input(const CausalConfig& config) {
  return config.positions == "learned" ? config.context : std::max(config.context, kLongest);
}

nn::AttentionConfig of_kind(nn::AttentionConfig attention, const AttentionKind& kind) {
  attention.selected_blocks = kind.selected_blocks;
  if (kind.is_linear) attention.feature_map = FeatureMapOptions{.causal = true};
  return attention;
}

}  // namespace

CausalBlock::CausalBlock(const nn::AttentionConfig& attention, const AttentionKind& kind)
    : mask_(kind.is_linear ? kind.mask : causal() & kind.mask),
      attention_norm_(make_module<nn::LayerNorm<>>("attention_norm", attention.embed_dim)),
      attention_(make_module<nn::MultiHeadAttention<>>("attention", of_kind(attention, kind))),
      feed_forward_norm_(make_module<nn::LayerNorm<>>("feed_forward_norm", attention.embed_dim)),
      widen_(make_module<nn::Linear<>>("widen", attention.embed_dim, 4 * attention.embed_dim)),
      narrow_(make_module<nn::Linear<>>("narrow", 4 * attention.embed_dim, attention.embed_dim)) {}

nn::Variable<> CausalBlock::forward(const nn::Variable<>& x) {
  const auto attended = attention_.forward(attention_norm_.forward(x), {.mask = mask_});
  return feed_forward(x + attended.out);
}

nn::Variable<> CausalBlock::continued(std::span<KvSequence> pasts, const nn::Variable<>& x) {
  return feed_forward(x + attention_.continued(pasts, attention_norm_.forward(x), mask_));
}

nn::Variable<> CausalBlock::feed_forward(const nn::Variable<>& x) {
  return x + narrow_.forward(nn::relu(widen_.forward(feed_forward_norm_.forward(x))));
}

CausalTransformer::CausalTransformer(const CausalConfig& config)
    : CausalTransformer(config, {.mask = heed::parse_mask(config.mask)}) {}

CausalTransformer::CausalTransformer(const CausalConfig& config, const AttentionKind& kind)
    : tokens_(make_module<nn::TokenEmbedding<>>("tokens", config.vocab_size, config.d_model)),
      add_positions_([](const nn::Variable<>& x, std::int64_t) { return x; }),
      max_length_(longest_input(config)) {
  const auto add_by = [this](auto& positions) {
    add_positions_ = [&positions](const nn::Variable<>& x, std::int64_t first) {
      return positions.forward(x, first);
    };
  };
  if (config.positions == "sinusoidal") {
    add_by(
        make_module<nn::SinusoidalPositionalEncoding<>>("positions", config.d_model, max_length_));
  } else if (config.positions == "learned") {
    add_by(make_module<nn::LearnedPositionalEncoding<>>("positions", config.d_model, max_length_,
                                                        0.0));
  }
  const nn::AttentionConfig attention = attention_config(config, max_length_);
  for (std::int64_t i = 0; i < config.layers; ++i) {
    blocks_.push_back(&make_module<CausalBlock>(fmt::format("blocks.{}", i), attention, kind));
  }
  norm_ = &make_module<nn::LayerNorm<>>("norm", config.d_model);
  out_ = &make_module<nn::Linear<>>("out", config.d_model, config.vocab_size);
}

nn::Variable<> CausalTransformer::forward(TensorView<const std::int64_t> ids) {
  const FloatEnvironment environment;
  nn::Variable<> x = add_positions_(tokens_.forward(ids), 0);
  for (CausalBlock* block : blocks_) x = block->forward(x);
  return logits(x);
}

nn::Past CausalTransformer::make_past() const {
  std::vector<KvSequence> layers;
  for (const CausalBlock* block : blocks_) layers.push_back(block->make_past());
  return nn::Past(std::move(layers));
}

nn::Past CausalTransformer::make_past(KvPool& pool) const {
  return {pool, static_cast<std::int64_t>(blocks_.size())};
}

nn::Variable<> CausalTransformer::continued(nn::Past& past, TensorView<const std::int64_t> ids) {
  const FloatEnvironment environment;
  const std::int64_t length = past.length();
  nn::Variable<> x = add_positions_(tokens_.forward(ids), length);
  try {
    std::int64_t layer = 0;
    for (CausalBlock* block : blocks_) x = block->continued(past.layer(layer++), x);
  } catch (...) {
    past.truncate(length);
    throw;
  }
  return logits(x);
}

nn::Variable<> CausalTransformer::logits(const nn::Variable<>& x) {
  const FloatEnvironment environment;
  return out_->forward(norm_->forward(x));
}

}}}  // namespace heed::v0::models
