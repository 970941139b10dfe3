#include "models/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "heed/attention/mask.h"
#include "heed/attention/packed.h"
#include "heed/attention/position.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/rotary.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "models/experts.h"
#include "models/for_rows.h"
#include "models/kernels/row_functions.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// @param slopes of ALiBi, [num_heads] or empty
AttentionOptions options_of(const Model::Parts& parts, const LayerConfig& layer, FloatView slopes) {
  const ModelConfig& config = parts.config;
  AttentionOptions options;
  if (!slopes.empty()) options.alibi_slopes = slopes;
  if (const auto& buckets = config.position_buckets) {
    options.relative_bias = RelativeBias<float>{
        parts.position_bias,
        RelativeBuckets::t5(buckets->count, buckets->max_distance, !config.is_causal())};
  }
  if (config.attention_scale) options.scale = static_cast<float>(*config.attention_scale);
  options.softcap = static_cast<float>(config.score_softcap.value_or(0));
  const std::int64_t reach = layer.window ? *layer.window - 1 : 0;
  if (!config.is_causal()) {
    if (layer.window) options.mask = sliding_window(reach, reach);
    return options;
  }
  options.mask = layer.window ? causal() & sliding_window(reach, 0) : causal();
  return options;
}

// The cosines and sines of every token, [1, tokens, rotary_dim / 2].
struct RotaryAngles {
  Tensor<float> cos, sin;
};

// A forward pass and its memory, which all layers share.
class Pass {
 public:
  Pass(const Model::Parts& parts, const PassInputs& inputs, const ForwardOptions& options)
      : parts_(parts),
        config_(parts.config),
        inputs_(inputs),
        options_(options),
        x_(buffer(config_.hidden_size)),
        normed_(buffer(config_.hidden_size)),
        query_(buffer(config_.num_heads * config_.head_dim)),
        key_(buffer(config_.num_kv_heads * config_.head_dim)),
        value_(buffer(config_.num_kv_heads * config_.head_dim)),
        gate_(buffer(config_.intermediate_size)),
        up_(buffer(has_gates() ? config_.intermediate_size : 0)) {
    if (config_.has_alibi) slopes_ = alibi_slopes<float>(config_.num_heads);
    for (const LayerConfig& layer : config_.layers) {
      attention_options_.push_back(options_of(parts_, layer, slopes_));
    }
  }

  Tensor<float> run() {
    find_positions();
    embed();
    show_hidden_states(0);
    for (std::int64_t i = 0; i < config_.num_layers; ++i) {
      run_layer(parts_.layers[static_cast<std::size_t>(i)], i);
      const bool is_last = i + 1 == config_.num_layers;
      if (is_last) apply_norm(parts_.final_norm, config_, x_, x_);
      show_hidden_states(i + 1);
    }
    return std::move(x_);
  }

 private:
  bool has_gates() const {
    return std::any_of(parts_.layers.begin(), parts_.layers.end(),
                       [](const TransformerLayer& layer) { return layer.mlp.is_gated(); });
  }
  Tensor<float> buffer(std::int64_t width) const {
    return Tensor<float>::uninitialized({inputs_.size(), width});
  }
  void show_hidden_states(std::int64_t index) const {
    if (options_.hidden_states) options_.hidden_states(index, x_);
  }

  // Finds the position of each token in its text, and the rotary angles.
  void find_positions() {
    const std::int64_t before = inputs_.past == nullptr ? 0 : inputs_.past->length();
    std::int64_t longest = 0;
    for (std::size_t text = 0; text + 1 < inputs_.boundaries.size(); ++text) {
      const std::int64_t length = inputs_.boundaries[text + 1] - inputs_.boundaries[text];
      longest = std::max(longest, before + length);
      for (std::int64_t i = 0; i < length; ++i) positions_.push_back(before + i);
      if (config_.padding_id) count_from_padding(*config_.padding_id, inputs_.boundaries[text]);
    }
    for (const RotaryPositions& rotary : config_.rotaries) {
      angles_.push_back(angles_of(rotary, std::max<std::int64_t>(longest, 1)));
    }
  }

  // Replaces the positions from token `first` on by RoBERTa's; padding has −1.
  void count_from_padding(std::int64_t padding, std::int64_t first) {
    std::int64_t position = 0;
    for (auto i = static_cast<std::size_t>(first); i < positions_.size(); ++i) {
      positions_[i] = inputs_.ids[i] == padding ? -1 : position++;
    }
  }

  RotaryAngles angles_of(const RotaryPositions& rotary, std::int64_t longest) const {
    RotaryFrequencies frequencies =
        rotary_frequencies(rotary.rotary_dim, rotary.base, rotary.scaling, longest);
    for (std::size_t i = 0; i < rotary.divisors.size(); ++i) {
      frequencies.inv_freq.data()[i] /= rotary.divisors[i];
    }
    const std::int64_t pairs = rotary.rotary_dim / 2;
    RotaryAngles angles{.cos = Tensor<float>::uninitialized({1, inputs_.size(), pairs}),
                        .sin = Tensor<float>::uninitialized({1, inputs_.size(), pairs})};
    for_rows(inputs_.size(), pairs * 16, [&](std::int64_t token) {
      for (std::int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(positions_[static_cast<std::size_t>(token)]) *
                             frequencies.inv_freq.data()[i];
        angles.cos.data()[token * pairs + i] =
            static_cast<float>(elementary::cos(angle) * frequencies.attention_factor);
        angles.sin.data()[token * pairs + i] =
            static_cast<float>(elementary::sin(angle) * frequencies.attention_factor);
      }
    });
    return angles;
  }

  void embed() {
    if (!config_.embedding_size) {
      embed(x_, normed_);
      return;
    }
    Tensor<float> narrow = buffer(*config_.embedding_size);
    Tensor<float> other = buffer(*config_.embedding_size);
    embed(narrow, other);
    parts_.embedding_projection.apply(narrow, x_);
  }

  // x = norm(embedding_scale · tokens[id] + positions[first_position + position] +
  // token_types[type]). `others` is memory for rows.
  void embed(Tensor<float>& x, Tensor<float>& others) const {
    const std::int64_t width = parts_.tokens.columns();
    const RowFunctions& functions = row_functions();
    const auto scale = static_cast<float>(config_.embedding_scale);
    for_rows(inputs_.size(), width, [&](std::int64_t token) {
      const auto index = static_cast<std::size_t>(token);
      const std::span<float> row(x.data() + token * width, static_cast<std::size_t>(width));
      const std::span<float> other(others.data() + token * width, row.size());
      parts_.tokens.row(inputs_.ids[index], row);
      for (float& element : row) element *= scale;
      if (parts_.positions.rows() > 0) {
        parts_.positions.row(config_.first_position + positions_[index], other);
        functions.add(other.data(), width, row.data());
      }
      if (parts_.token_types.rows() > 0) {
        parts_.token_types.row(inputs_.type_ids.empty() ? 0 : inputs_.type_ids[index], other);
        functions.add(other.data(), width, row.data());
      }
    });
    apply_norm(parts_.embedding_norm, config_, x, x);
  }

  // The parts differ only in when the second one reads x.
  void run_layer(const TransformerLayer& layer, std::int64_t index) {
    const PartOrder order = config_.part_order;
    if (order == PartOrder::kParallel) widen(layer.mlp, normed(layer.mlp_norms.before));
    const FloatView input = normed(layer.attention_norms.before);
    if (order == PartOrder::kParallelOneNorm) widen(layer.mlp, input);
    attend_to(layer, index, input);
    add_part(layer.attention_norms);
    if (layer.has_source()) {
      attend_to_source(layer, index, normed(layer.cross_norms.before));
      add_part(layer.cross_norms);
    }
    if (layer.experts.empty()) {
      if (order == PartOrder::kInTurn) widen(layer.mlp, normed(layer.mlp_norms.before));
      layer.mlp.down.apply(gate_, normed_);
    } else {
      normed_ = mix_experts(layer, config_, normed(layer.mlp_norms.before));
    }
    add_part(layer.mlp_norms);
  }

  // The norm of x, in normed_; x itself if the norm is empty.
  FloatView normed(const Norm& norm) {
    apply_norm(norm, config_, x_, normed_);
    return norm.weight.empty() ? x_ : normed_;
  }

  // x = after_sum(x + after(normed_)).
  void add_part(const PartNorms& norms) {
    apply_norm(norms.after, config_, normed_, normed_);
    add_normed();
    apply_norm(norms.after_sum, config_, x_, x_);
  }

  // normed_ = attention(input).
  void attend_to(const TransformerLayer& layer, std::int64_t index, FloatView input) {
    layer.query.apply(input, query_);
    layer.key.apply(input, key_);
    layer.value.apply(input, value_);
    apply_norm(layer.query_norm, config_, query_, query_);
    apply_norm(layer.key_norm, config_, key_, key_);
    if (const auto rotary = config_.layers[static_cast<std::size_t>(index)].rotary) {
      query_ = rotated(query_, config_.num_heads, *rotary);
      key_ = rotated(key_, config_.num_kv_heads, *rotary);
    }
    if (options_.observer) show_attention(index);
    Tensor<float> out =
        attended(index).reshaped({inputs_.size(), config_.num_heads * config_.head_dim});
    switch_off(index, out);
    layer.out.apply(out, normed_);
  }

  // normed_ = attention(input, source).
  void attend_to_source(const TransformerLayer& layer, std::int64_t index, FloatView input) {
    layer.cross_query.apply(input, query_);
    AttentionOptions options;
    if (config_.attention_scale) options.scale = static_cast<float>(*config_.attention_scale);
    const auto i = static_cast<std::size_t>(index);
    const FloatView query = heads_of(query_, config_.num_heads);
    const FloatView key = inputs_.source->keys[i];
    const FloatView value = inputs_.source->values[i];
    if (options_.cross_observer) {
      const auto shown = [](FloatView x) { return x.to_rank(4).permute({0, 2, 1, 3}); };
      options_.cross_observer({.layer = index,
                               .text = 0,
                               .query = shown(query),
                               .key = shown(key),
                               .value = shown(value),
                               .options = options});
    }
    const std::int64_t key_boundaries[] = {0, key.extent(0)};
    const Tensor<float> out =
        attention_packed(query, key, value, {inputs_.boundaries, key_boundaries}, options)
            .reshaped({inputs_.size(), config_.num_heads * config_.head_dim});
    layer.cross_out.apply(out, normed_);
  }

  Tensor<float> rotated(const Tensor<float>& x, std::int64_t num_heads, std::size_t index) const {
    const RotaryPositions& rotary = config_.rotaries[index];
    return rotary_embedding(x.view().reshape({1, inputs_.size(), num_heads * config_.head_dim}),
                            angles_[index].cos, angles_[index].sin, rotary.pairing,
                            {.rotary_dim = rotary.rotary_dim, .num_heads = num_heads})
        .reshaped({inputs_.size(), num_heads * config_.head_dim});
  }

  FloatView heads_of(const Tensor<float>& x, std::int64_t num_heads) const {
    return x.view().reshape({inputs_.size(), num_heads, config_.head_dim});
  }

  // Returns [tokens, num_heads, head_dim].
  Tensor<float> attended(std::int64_t layer) const {
    const AttentionOptions& options = attention_options_[static_cast<std::size_t>(layer)];
    const FloatView query = heads_of(query_, config_.num_heads);
    const FloatView key = heads_of(key_, config_.num_kv_heads);
    const FloatView value = heads_of(value_, config_.num_kv_heads);
    if (inputs_.past == nullptr) {
      return attention_packed(query, key, value, {inputs_.boundaries, inputs_.boundaries}, options);
    }
    KvSequence& sequence = inputs_.past->layer(layer).front();
    sequence.append(key.permute({1, 0, 2}), value.permute({1, 0, 2}));
    const KvSequence* const sequences[] = {&sequence};
    return attend(query, KvBatch{sequences, inputs_.boundaries}, options);
  }

  void show_attention(std::int64_t layer) const {
    const auto shown = [&](const Tensor<float>& x, std::int64_t num_heads, std::int64_t text) {
      const auto i = static_cast<std::size_t>(text);
      const FloatView rows =
          heads_of(x, num_heads).slice(0, inputs_.boundaries[i], inputs_.boundaries[i + 1]);
      return rows.to_rank(4).permute({0, 2, 1, 3});
    };
    for (std::int64_t text = 0; text < inputs_.num_texts(); ++text) {
      options_.observer({.layer = layer,
                         .text = text,
                         .query = shown(query_, config_.num_heads, text),
                         .key = shown(key_, config_.num_kv_heads, text),
                         .value = shown(value_, config_.num_kv_heads, text),
                         .options = attention_options_[static_cast<std::size_t>(layer)]});
    }
  }

  void switch_off(std::int64_t layer, Tensor<float>& out) const {
    const std::int64_t width = config_.num_heads * config_.head_dim;
    for (const HeadIndex& head : options_.switched_off) {
      if (head.layer != layer) continue;
      for (std::int64_t token = 0; token < inputs_.size(); ++token) {
        std::fill_n(out.data() + token * width + head.head * config_.head_dim, config_.head_dim,
                    0.0F);
      }
    }
  }

  // gate_ = activation(mlp.gate(input)) · mlp.up(input), or activation(mlp.up(input)).
  void widen(const FeedForward& mlp, FloatView input) {
    models::widen(mlp, config_.activation, input, gate_, up_);
  }

  // x += residual_scale · normed_.
  void add_normed() {
    const std::int64_t width = config_.hidden_size;
    const auto scale = static_cast<float>(config_.residual_scale);
    for_rows(inputs_.size(), width, [&](std::int64_t token) {
      if (scale != 1) {
        float* const row = normed_.data() + token * width;
        std::for_each(row, row + width, [&](float& element) { element *= scale; });
      }
      row_functions().add(normed_.data() + token * width, width, x_.data() + token * width);
    });
  }

  const Model::Parts& parts_;
  const ModelConfig& config_;
  const PassInputs& inputs_;
  const ForwardOptions& options_;
  Tensor<float> slopes_;                             // of ALiBi, [num_heads]; or empty
  std::vector<AttentionOptions> attention_options_;  // of each layer
  std::vector<std::int64_t> positions_;              // of each token in its text
  std::vector<RotaryAngles> angles_;                 // of each of config.rotaries
  Tensor<float> x_;                                  // hidden states, [tokens, hidden_size]
  Tensor<float> normed_;                             // the input of a part, and then its output
  Tensor<float> query_, key_, value_;
  Tensor<float> gate_, up_;  // inside the feed-forward layer
};

}  // namespace

void apply_norm(const Norm& norm, const ModelConfig& config, FloatView x, TensorView<float> out) {
  if (norm.weight.empty()) return;
  const Shape& shape = norm.weight.shape();
  const std::int64_t width = shape[shape.rank() - 1];
  const std::int64_t heads = norm.weight.num_elements() / width;
  const float* const bias = norm.bias.empty() ? nullptr : norm.bias.data();
  const RowFunctions& functions = row_functions();
  const auto apply = config.norms == NormKind::kLayer ? functions.layer_norm : functions.rms_norm;
  for_rows(x.num_elements() / width, width, [&](std::int64_t row) {
    const NormRow rule{norm.weight.data() + row % heads * width, bias, width, config.norm_epsilon};
    apply(rule, x.data() + row * width, out.data() + row * width);
  });
}

Tensor<float> run_graph(const Model::Parts& parts, const PassInputs& inputs,
                        const ForwardOptions& options) {
  return Pass(parts, inputs, options).run();
}

}}}  // namespace heed::v0::models
