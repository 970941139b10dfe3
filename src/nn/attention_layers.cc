#include "heed/nn/attention_layers.h"

#include <fmt/format.h>

#include <cmath>

#include "attention/philox.h"

namespace heed::inline v0::nn {

namespace {

std::vector<AttentionRow> all_rows(const Shape& heads) {
  std::vector<AttentionRow> rows;
  rows.reserve(static_cast<std::size_t>(heads[0] * heads[1] * heads[2]));
  for (std::int64_t batch = 0; batch < heads[0]; ++batch) {
    for (std::int64_t head = 0; head < heads[1]; ++head) {
      for (std::int64_t query = 0; query < heads[2]; ++query) rows.push_back({batch, head, query});
    }
  }
  return rows;
}

// Does to weights [rows, kv_len] what the operator does before it multiplies the values.
template <class T>
void drop(Tensor<T>& weights, const std::vector<AttentionRow>& rows, const heed::Dropout& dropout) {
  const DropoutMask mask(dropout);
  if (mask.keeps_everything()) return;
  T* weight = weights.data();
  for (const AttentionRow& row : rows) {
    ScorePosition at{static_cast<std::int32_t>(row.batch), static_cast<std::int32_t>(row.head),
                     static_cast<std::int32_t>(row.query), 0};
    for (; at.kv_idx < weights.extent(1); ++at.kv_idx) *weight++ *= static_cast<T>(mask.factor(at));
  }
}

template <class T>
Tensor<T> wanted_weights(const Variable<T>& query, const Variable<T>& key,
                         const AttendOptions& options,
                         const BasicAttentionOptions<T>& attention_options) {
  if (!options.return_attention && options.rows.empty()) return {};
  const auto rows = options.return_attention ? all_rows(query.shape()) : options.rows;
  Tensor<T> weights = attention_weights(query.value(), key.value(), rows, attention_options);
  drop(weights, rows, attention_options.dropout);
  if (!options.return_attention) return weights;
  return std::move(weights).reshaped(
      {query.extent(0), query.extent(1), query.extent(2), key.extent(2)});
}

std::int64_t checked_head_dim(const AttentionConfig& config) {
  if (config.embed_dim < 1 || config.num_heads < 1 || config.head_dim < 0) {
    throw InvalidArgument(
        fmt::format("{}: embed_dim is {}, num_heads {} and head_dim {}; expected positive numbers",
                    config.class_name, config.embed_dim, config.num_heads, config.head_dim));
  }
  if (config.head_dim != 0) return config.head_dim;
  if (config.embed_dim % config.num_heads != 0) {
    throw InvalidArgument(fmt::format("{}: embed_dim {} is not a multiple of num_heads, {}",
                                      config.class_name, config.embed_dim, config.num_heads));
  }
  return config.embed_dim / config.num_heads;
}

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
Attended<T> scaled_dot_product_attention(const Variable<T>& query, const Variable<T>& key,
                                         const Variable<T>& value, const AttendOptions& options,
                                         const heed::Dropout& dropout) {
  BasicAttentionOptions<T> attention_options;
  attention_options.mask = options.mask;
  attention_options.dropout = dropout;
  return {attention(query, key, value, attention_options),
          wanted_weights(query, key, options, attention_options)};
}

AttentionConfig fused_projection(std::int64_t embed_dim, std::int64_t num_heads, double dropout) {
  return {.embed_dim = embed_dim,
          .num_heads = num_heads,
          .inputs = {"qkv_proj"},
          .bias = false,
          .out_dropout = {"dropout", dropout}};
}

AttentionConfig separate_projections(std::int64_t embed_dim, std::int64_t num_heads,
                                     double dropout) {
  return {.embed_dim = embed_dim,
          .num_heads = num_heads,
          .core = "attention",
          .weight_dropout = {"dropout", dropout}};
}

AttentionConfig cross_projections(std::int64_t d_model, std::int64_t num_heads, double dropout) {
  return {.embed_dim = d_model,
          .num_heads = num_heads,
          .inputs = {"W_q", "W_k", "W_v"},
          .out = "W_o",
          .weight_dropout = {"dropout", dropout}};
}

AttentionConfig twice_dropped(std::int64_t d_model, std::int64_t num_heads, double dropout) {
  return {.embed_dim = d_model,
          .num_heads = num_heads,
          .weight_dropout = {"attn_dropout", dropout},
          .out_dropout = {"out_dropout", dropout}};
}

template <class T>
MultiHeadAttention<T>::MultiHeadAttention(const AttentionConfig& config) : config_(config) {
  config_.head_dim = checked_head_dim(config);
  const std::size_t num_inputs = config.inputs.size();
  if (num_inputs != 1 && num_inputs != 3) {
    throw InvalidArgument(fmt::format("{}: inputs has {} names, expected one or three",
                                      config.class_name, num_inputs));
  }
  if (!config.has_head_axis && config.num_heads != 1) {
    throw InvalidArgument(fmt::format("{}: has_head_axis is false but num_heads is {}, expected 1",
                                      config.class_name, config.num_heads));
  }
  const std::int64_t inner_dim = config.num_heads * config_.head_dim;
  const std::int64_t in_width = num_inputs == 1 ? 3 * inner_dim : inner_dim;
  const auto projection = [&](const std::string& name, std::int64_t in, std::int64_t out) {
    return &this->template make_module<Linear<T>>(name, in, out, config.bias);
  };
  const auto dropout = [&](const NamedDropout& named) -> Dropout<T>* {
    return named.name.empty() ? nullptr
                              : &this->template make_module<Dropout<T>>(named.name, named.p);
  };
  for (const auto& name : config.inputs) {
    inputs_.push_back(projection(name, config.embed_dim, in_width));
  }
  if (!config.out.empty()) out_ = projection(config.out, inner_dim, config.embed_dim);
  if (!config.core.empty()) {
    this->template make_module<ScaledDotProductAttention<T>>(config.core);
  }
  weight_dropout_ = dropout(config.weight_dropout);
  out_dropout_ = dropout(config.out_dropout);
}

template <class T>
double MultiHeadAttention<T>::scale() const noexcept {
  return 1 / std::sqrt(static_cast<double>(config_.head_dim));
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
Variable<T> MultiHeadAttention<T>::as_heads(const Variable<T>& projected) const {
  return permute(reshape(projected, {projected.extent(0), projected.extent(1), config_.num_heads,
                                     config_.head_dim}),
                 {0, 2, 1, 3});
}

template <class T>
std::vector<Variable<T>> MultiHeadAttention<T>::project_together(const Variable<T>& input) {
  const Variable<T> x = inputs_.front()->forward(input);
  const Variable<T> all =
      permute(reshape(x, {x.extent(0), x.extent(1), 3, config_.num_heads, config_.head_dim}),
              {2, 0, 3, 1, 4});
  return {select(all, 0, 0), select(all, 0, 1), select(all, 0, 2)};
}

template <class T>
Attended<T> MultiHeadAttention<T>::attend(const std::vector<Variable<T>>& heads,
                                          const AttendOptions& options) {
  AttendOptions masked = options;
  if (config_.is_causal) masked.mask = masked.mask & causal();
  if (observer_) observer_({heads[0].value(), heads[1].value(), masked.mask});
  auto [attended, weights] = scaled_dot_product_attention(
      heads[0], heads[1], heads[2], masked,
      weight_dropout_ == nullptr ? heed::Dropout{} : weight_dropout_->draw());
  Variable<T> out =
      reshape(permute(attended, {0, 2, 1, 3}),
              {attended.extent(0), attended.extent(2), config_.num_heads * config_.head_dim});
  if (out_ != nullptr) out = out_->forward(out);
  if (out_dropout_ != nullptr) out = out_dropout_->forward(out);
  if (options.return_attention && !config_.has_head_axis) {
    const Shape shape{weights.extent(0), weights.extent(2), weights.extent(3)};
    weights = std::move(weights).reshaped(shape);
  }
  return {std::move(out), std::move(weights)};
}

template <class T>
Attended<T> MultiHeadAttention<T>::forward(const Variable<T>& query, const Variable<T>& key,
                                           const Variable<T>& value, const AttendOptions& options) {
  for (const auto* input : {&query, &key, &value}) check_input(*input);
  if (key.node() != query.node() || value.node() != query.node()) check_three_projections();
  if (inputs_.size() == 1) return attend(project_together(query), options);
  const Variable<T> heads = as_heads(inputs_[0]->forward(query));
  return attend({heads, as_heads(inputs_[1]->forward(key)), as_heads(inputs_[2]->forward(value))},
                options);
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
                                             const AttendOptions& options) {
  check_input(query);
  check_three_projections();
  const std::int64_t width = config_.num_heads * config_.head_dim;
  for (const auto* projected : {&source.key, &source.value}) {
    if (projected->is_defined() && projected->rank() == 3 && projected->extent(2) == width) {
      continue;
    }
    throw InvalidArgument(
        fmt::format("{}: source has not been projected by this layer", config_.class_name));
  }
  return attend(
      {as_heads(inputs_[0]->forward(query)), as_heads(source.key), as_heads(source.value)},
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
                             .is_causal = true,
                             .has_head_axis = false}) {}

template <class T>
CausalAttention<T>::CausalAttention(const AttentionConfig& config, std::int64_t max_len)
    : mha_(this->template make_module<MultiHeadAttention<T>>("mha", config)), max_len_(max_len) {
  this->make_constant("mask", future(max_len));
}

template <class T>
Attended<T> CausalAttention<T>::forward(const Variable<T>& x, const AttendOptions& options) {
  if (x.rank() == 3 && x.extent(1) > max_len_) {
    throw InvalidArgument(fmt::format("{}: x has {} positions but max_len is {}",
                                      this->class_name(), x.extent(1), max_len_));
  }
  AttendOptions masked = options;
  masked.mask = masked.mask & causal();
  return mha_.forward(x, masked);
}

template HEED_API Attended<float> scaled_dot_product_attention(const Variable<float>&,
                                                               const Variable<float>&,
                                                               const Variable<float>&,
                                                               const AttendOptions&,
                                                               const heed::Dropout&);
template HEED_API Attended<double> scaled_dot_product_attention(const Variable<double>&,
                                                                const Variable<double>&,
                                                                const Variable<double>&,
                                                                const AttendOptions&,
                                                                const heed::Dropout&);
template class ScaledDotProductAttention<float>;
template class ScaledDotProductAttention<double>;
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
