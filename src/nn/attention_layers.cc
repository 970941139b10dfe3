#include "heed/nn/attention_layers.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>
#include <vector>

#include "heed/position.h"
#include "heed/rotary.h"
#include "nn/weights_of_heads.h"

namespace heed::inline v0::nn {

namespace {

// true above the diagonal
Tensor<bool> future(std::int64_t max_len) {
  if (max_len < 0) {
    throw InvalidArgument(
        fmt::format("CausalAttention: max_len is {}, expected at least 0", max_len));
  }
  return materialize_block(causal(), {.q_len = max_len, .kv_len = max_len})
      .reshaped({max_len, max_len});
}

}  // namespace

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(const AttentionConfig& config)
    : config_(resolved(config)) {
  const std::int64_t q_width = config_.num_heads * config_.head_dim;
  const std::int64_t kv_width = config_.num_kv_heads * config_.head_dim;
  const auto projection = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    return &this->template make_module<Linear<T>>(name, in, out, config.bias);
  };
  const auto dropout = [&](const NamedDropout& named) -> Dropout<T>* {
    return named.name.empty() ? nullptr
                              : &this->template make_module<Dropout<T>>(named.name, named.p);
  };
  const std::vector<std::int64_t> widths = config.inputs.size() == 1
                                               ? std::vector{q_width + 2 * kv_width}
                                               : std::vector{q_width, kv_width, kv_width};
  for (std::size_t i = 0; i < widths.size(); ++i) {
    inputs_.push_back(projection(config.inputs[i], config.embed_dim, widths[i]));
  }
  if (!config.out.empty()) out_ = projection(config.out, q_width, config.embed_dim);
  if (!config.core.empty()) {
    this->template make_module<ScaledDotProductAttention<T>>(config.core);
  }
  weight_dropout_ = dropout(config.weight_dropout);
  out_dropout_ = dropout(config.out_dropout);
  if (config_.alibi) alibi_slopes_ = heed::alibi_slopes<T>(config_.num_heads);
  if (config_.rotary.max_len == 0) return;
  auto [cos, sin] =
      rotary_caches<T>(config_.rotary.max_len, config_.rotary.rotary_dim, config_.rotary.base);
  cos_ = std::move(cos);
  sin_ = std::move(sin);
}

template <class T>
double MultiHeadAttention<T>::scale() const noexcept {
  return config_.scale.value_or(1 / std::sqrt(static_cast<double>(config_.head_dim)));
}

template <class T>
void MultiHeadAttention<T>::check_input(const Variable<T>& input) const {
  if (input.rank() == 3 && input.extent(2) == config_.embed_dim) return;
  throw InvalidArgument(
      fmt::format("{}: an input has shape {}, expected [batch, length, embed_dim = {}]",
                  config_.class_name, to_string(input.shape()), config_.embed_dim));
}

template <class T>
void MultiHeadAttention<T>::check_three_projections() const {
  if (inputs_.size() == 3) return;
  throw InvalidArgument(
      fmt::format("{}: query, key and value differ, but {} projects one input to all three",
                  config_.class_name, config_.inputs.front()));
}

template <class T>
const Linear<T>& MultiHeadAttention<T>::input_projection(std::size_t index) const {
  if (inputs_.size() == 3) return *inputs_[index];
  throw InvalidArgument(
      fmt::format("{}: {} projects to query, key and value at once, expected a "
                  "projection for each",
                  config_.class_name, config_.inputs.front()));
}

template <class T>
const Linear<T>& MultiHeadAttention<T>::W_O() const {  // NOLINT(readability-identifier-naming)
  if (out_ != nullptr) return *out_;
  throw InvalidArgument(
      fmt::format("{}: there is no projection of the output", config_.class_name));
}

template <class T>
Heads<T> MultiHeadAttention<T>::turned(const Heads<T>& heads, std::int64_t first_position) const {
  const RotaryConfig& rotary = config_.rotary;
  if (rotary.max_len == 0) return heads;
  return rotary_embedding(heads, cos_, sin_,
                          {.interleaved = rotary.interleaved,
                           .rotary_dim = rotary.rotary_dim,
                           .offset = first_position});
}

template <class T>
Attended<T> MultiHeadAttention<T>::attend(const ProjectedHeads& heads,
                                          const AttendOptions<T>& given) {
  AttendOptions<T> options = given;
  options.mask = options.mask & config_.mask;
  if (!options.terms.alibi_slopes.is_defined()) options.terms.alibi_slopes = alibi_slopes_;
  BasicAttentionOptions<T> bound = operator_options(
      options, weight_dropout_ == nullptr ? heed::Dropout{} : weight_dropout_->draw());
  if (config_.scale) bound.scale = static_cast<T>(*config_.scale);
  bound.softcap = static_cast<T>(config_.softcap);
  const Heads<T> query = turned(heads.query, options.query_offset);
  const Heads<T> key = turned(heads.key, 0);
  if (observer_) observer_({query.view(), key.view(), bound});
  Variable<T> out = attention(query, key, heads.value, bound, options.terms);
  if (out_ != nullptr) out = out_->forward(out);
  if (out_dropout_ != nullptr) out = out_dropout_->forward(out);
  Tensor<T> weights = wanted_weights(query, key, options, bound);
  if (options.return_attention && !config_.has_head_axis) {
    const Shape shape{weights.extent(0), weights.extent(2), weights.extent(3)};
    weights = std::move(weights).reshaped(shape);
  }
  return {std::move(out), std::move(weights)};
}

template <class T>
Attended<T> MultiHeadAttention<T>::forward(const Variable<T>& query, const Variable<T>& key,
                                           const Variable<T>& value,
                                           const AttendOptions<T>& options) {
  for (const auto* input : {&query, &key, &value}) check_input(*input);
  if (key.node() != query.node() || value.node() != query.node()) check_three_projections();
  HeadColumns q{config_.num_heads, config_.head_dim};
  HeadColumns k{config_.num_kv_heads, config_.head_dim};
  if (inputs_.size() == 3) {
    const Variable<T> projected = inputs_[0]->forward(query);
    return attend({{projected, q}, {inputs_[1]->forward(key), k}, {inputs_[2]->forward(value), k}},
                  options);
  }
  const Variable<T> all = inputs_.front()->forward(query);
  k.first = q.end();
  HeadColumns v = k;
  v.first = k.end();
  return attend({{all, q}, {all, k}, {all, v}}, options);
}

template <class T>
ProjectedSource<T> MultiHeadAttention<T>::project(const Variable<T>& source) {
  check_input(source);
  check_three_projections();
  return {inputs_[1]->forward(source), inputs_[2]->forward(source)};
}

template <class T>
Attended<T> MultiHeadAttention<T>::attend_to(const Variable<T>& query,
                                             const ProjectedSource<T>& source,
                                             const AttendOptions<T>& options) {
  check_input(query);
  check_three_projections();
  const HeadColumns columns{config_.num_kv_heads, config_.head_dim};
  for (const auto* projected : {&source.key, &source.value}) {
    if (projected->is_defined() && projected->rank() == 3 &&
        projected->extent(2) == columns.width()) {
      continue;
    }
    throw InvalidArgument(
        fmt::format("{}: source has not been projected by this layer", config_.class_name));
  }
  return attend({{inputs_[0]->forward(query), {config_.num_heads, config_.head_dim}},
                 {source.key, columns},
                 {source.value, columns}},
                options);
}

template <class T>
AttentionObserver<T>::AttentionObserver(Module<T>& model, const Observe& observe) {
  model.for_each_part([&](const std::string& name, Module<T>& part) {
    auto* const layer = dynamic_cast<MultiHeadAttention<T>*>(&part);
    if (layer == nullptr) return;
    layers_.push_back(layer);
    layer->observe([observe, name](const AttentionCall<T>& call) { observe(name, call); });
  });
}

template <class T>
AttentionObserver<T>::~AttentionObserver() {
  for (auto* const layer : layers_) layer->observe({});
}

template <class T>
SelfAttention<T>::SelfAttention(std::int64_t d_model)
    : MultiHeadAttention<T>({.class_name = "SelfAttention",
                             .embed_dim = d_model,
                             .inputs = {"W_q", "W_k", "W_v"},
                             .out = "",
                             .has_head_axis = false}) {}

template <class T>
SingleHeadAttention<T>::SingleHeadAttention(std::int64_t embed_dim, std::int64_t head_dim)
    : MultiHeadAttention<T>({.class_name = "SingleHeadAttention",
                             .embed_dim = embed_dim,
                             .head_dim = head_dim,
                             .inputs = {"W_Q", "W_K", "W_V"},
                             .out = "W_O",
                             .bias = false,
                             .mask = causal(),
                             .has_head_axis = false}) {}

template <class T>
CausalAttention<T>::CausalAttention(const AttentionConfig& config, std::int64_t max_len)
    : mha_(this->template make_module<MultiHeadAttention<T>>("mha", config)), max_len_(max_len) {
  this->make_constant("mask", future(max_len));
}

template <class T>
Attended<T> CausalAttention<T>::forward(const Variable<T>& x, const AttendOptions<T>& options) {
  if (x.rank() == 3 && x.extent(1) > max_len_) {
    throw InvalidArgument(fmt::format("{}: x has {} positions but max_len is {}",
                                      this->class_name(), x.extent(1), max_len_));
  }
  AttendOptions<T> masked = options;
  masked.mask = masked.mask & causal();
  return mha_.forward(x, masked);
}

template class MultiHeadAttention<float>;
template class MultiHeadAttention<double>;
template class AttentionObserver<float>;
template class AttentionObserver<double>;
template class SelfAttention<float>;
template class SelfAttention<double>;
template class SingleHeadAttention<float>;
template class SingleHeadAttention<double>;
template class CausalAttention<float>;
template class CausalAttention<double>;
template class CausalSelfAttention<float>;
template class CausalSelfAttention<double>;
template class CausalMultiHeadAttention<float>;
template class CausalMultiHeadAttention<double>;

}  // namespace heed::inline v0::nn
