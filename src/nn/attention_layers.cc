#include "heed/nn/attention_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "heed/attention/position.h"
#include "heed/attention/rotary.h"
#include "nn/divided_tokens.h"
#include "nn/weights_of_heads.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Returns [max_len, max_len], true above the diagonal.
Tensor<bool> future(std::int64_t max_len) {
  if (max_len < 0) {
    throw InvalidArgument(
        fmt::format("CausalAttention: max_len is {}, expected at least 0", max_len));
  }
  return materialize_block(causal(), {.q_len = max_len, .kv_len = max_len})
      .reshaped({max_len, max_len});
}

// Returns the number of past positions, which must be equal for all texts; x holds new positions.
template <class T>
std::int64_t length_of_all(const std::string& layer, std::span<const KvSequence> pasts,
                           const Variable<T>& x) {
  if (pasts.empty()) {
    throw InvalidArgument(fmt::format("{}: continued() was given no past", layer));
  }
  if (x.extent(0) != static_cast<std::int64_t>(pasts.size())) {
    throw InvalidArgument(fmt::format("{}: continued() was given a batch of {}, expected {}", layer,
                                      x.extent(0), pasts.size()));
  }
  for (const KvSequence& past : pasts) {
    if (past.length() == pasts.front().length()) continue;
    throw InvalidArgument(
        fmt::format("{}: continued() was given pasts of {} and {} positions, expected as many",
                    layer, pasts.front().length(), past.length()));
  }
  return pasts.front().length();
}

// Appends the positions [texts, heads, n, dim] to `pasts` and attends. Returns [texts · n,
// num_heads, dim]. If it fails, nothing is appended. Each row holds its heads side by side, and the
// texts follow each other.
Tensor<float> append_and_attend(std::span<KvSequence> pasts, FloatView query, FloatView key,
                                FloatView value, const AttentionOptions& options) {
  const std::int64_t n = query.extent(2);
  const std::int64_t length = pasts.front().length();
  const FloatView packed(query.data(), {query.extent(0) * n, query.extent(1), query.extent(3)},
                         {query.stride(2), query.stride(1), query.stride(3)});
  std::vector<const KvSequence*> sequences;
  std::vector<std::int64_t> boundaries{0};
  for (const KvSequence& past : pasts) {
    sequences.push_back(&past);
    boundaries.push_back(boundaries.back() + n);
  }
  std::size_t appended = 0;
  try {
    for (; appended < pasts.size(); ++appended) {
      const auto text = static_cast<std::int64_t>(appended);
      pasts[appended].append(key.slice(0, text, text + 1), value.slice(0, text, text + 1));
    }
    return heed::attend(packed, KvBatch{sequences, boundaries}, options);
  } catch (...) {
    while (appended > 0) pasts[--appended].truncate(length);
    throw;
  }
}

// Never called: continued() exists only for float.
template <class T>
[[noreturn]] Tensor<T> append_and_attend(std::span<KvSequence>, TensorView<const T>,
                                         TensorView<const T>, TensorView<const T>,
                                         const BasicAttentionOptions<T>&) {
  throw InvalidArgument("continued: a KvSequence keeps no float64");
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
  make_tables();
  const RotaryConfig& rotary = config_.rotary;
  if (rotary.max_len == 0) return;
  auto [cos, sin] = rotary_caches<T>(
      rotary.max_len,
      rotary_frequencies(rotary.rotary_dim, rotary.base, rotary.scaling, rotary.scaled_length));
  cos_ = std::move(cos);
  sin_ = std::move(sin);
}

// Initialises tables like learned positional encodings.
template <class T>
void MultiHeadAttention<T>::make_tables() {
  const auto table = [this](const char* name, std::int64_t rows, std::int64_t columns) {
    return this->make_parameter(name, learned_encoding<T>(default_generator(), rows, columns));
  };
  if (config_.relative_bias) {
    relative_bias_ = table("relative_bias", config_.num_heads, config_.relative_bias->count());
  }
  if (config_.relative_vectors) {
    const std::int64_t count = config_.relative_vectors->count();
    relative_key_ = table("relative_key", count, config_.head_dim);
    relative_value_ = table("relative_value", count, config_.head_dim);
  }
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
  RotaryOptions options{.rotary_dim = rotary.rotary_dim, .offset = first_position};
  Tensor<std::int64_t> places;
  if (const ContextParallel* const divided = ContextParallel::current()) {
    places = to_tensor(divided->places());
    for (std::int64_t& place : places.view().elements()) place += first_position;
    options.position_ids = places.view().reshape({1, places.extent(0)});
  }
  return rotary_embedding(heads, cos_, sin_, *rotary.pairing, options);
}

template <class T>
BasicAttentionOptions<T> MultiHeadAttention<T>::options_for(AttendOptions<T>& options,
                                                            const heed::Dropout& dropout) const {
  options.mask = options.mask & config_.mask;
  LearnedTerms<T>& terms = options.terms;
  const auto set_default = [](Variable<T>& term, const Variable<T>& own) {
    if (!term.is_defined()) term = own;
  };
  set_default(terms.alibi_slopes, alibi_slopes_);
  set_default(terms.relative_bias, relative_bias_);
  set_default(terms.relative_key, relative_key_);
  set_default(terms.relative_value, relative_value_);
  BasicAttentionOptions<T> bound = operator_options(options, dropout);
  if (config_.relative_bias) {
    bound.relative_bias = {terms.relative_bias.value(), *config_.relative_bias};
  }
  if (config_.relative_vectors) {
    bound.relative_vectors = {terms.relative_key.value(), terms.relative_value.value(),
                              *config_.relative_vectors};
  }
  if (config_.scale) bound.scale = static_cast<T>(*config_.scale);
  bound.softcap = static_cast<T>(config_.softcap);
  return bound;
}

template <class T>
Variable<T> MultiHeadAttention<T>::projected_out(const Variable<T>& attended) {
  const Variable<T> out = out_ == nullptr ? attended : out_->forward(attended);
  return out_dropout_ == nullptr ? out : out_dropout_->forward(out);
}

template <class T>
void MultiHeadAttention<T>::check_asks_nothing(const AttendOptions<T>& options) const {
  const auto& members = LearnedTerms<T>::kAll;
  const bool has_terms = std::any_of(members.begin(), members.end(), [&](auto member) {
    return (options.terms.*member).is_defined();
  });
  const std::pair<bool, const char*> refused[] = {
      {!options.mask.parts().empty(), "mask"},
      {static_cast<bool>(options.score_mod), "score_mod"},
      {has_terms, "terms"},
      {options.return_attention || !options.rows.empty(), "weights to look at"}};
  for (const auto& [is_given, option] : refused) {
    if (!is_given) continue;
    throw InvalidArgument(fmt::format(
        "{}: {} in a call of a layer with a feature_map, which has no scores; expected none",
        config_.class_name, option));
  }
}

// Refuses, for divided tokens, everything that would need all keys on one rank.
template <class T>
void MultiHeadAttention<T>::check_divides(const AttendOptions<T>& options) const {
  if (ContextParallel::current() == nullptr) return;
  const std::pair<bool, const char*> refused[] = {
      {config_.feature_map.has_value(), "a feature_map"},
      {config_.selected_blocks.has_value(), "selected_blocks"},
      {options.return_attention || !options.rows.empty(), "weights to look at"},
      {static_cast<bool>(observer_), "an observer"}};
  for (const auto& [is_given, what] : refused) {
    if (is_given) refuse_divided(fmt::format("{} with {}", config_.class_name, what));
  }
}

template <class T>
Attended<T> MultiHeadAttention<T>::attend(const ProjectedHeads& heads,
                                          const AttendOptions<T>& given) {
  check_divides(given);
  if (config_.feature_map) {
    check_asks_nothing(given);
    return {projected_out(feature_map_attention(turned(heads.query, given.query_offset),
                                                turned(heads.key, 0), heads.value,
                                                *config_.feature_map)),
            {}};
  }
  AttendOptions<T> options = given;
  const Heads<T> query = turned(heads.query, options.query_offset);
  const Heads<T> key = turned(heads.key, 0);
  if (config_.selected_blocks) {
    options.mask = options.mask &
                   Mask::blocks(select_blocks(query.view(), key.view(), *config_.selected_blocks));
  }
  const BasicAttentionOptions<T> bound =
      options_for(options, weight_dropout_ == nullptr ? heed::Dropout{} : weight_dropout_->draw());
  if (observer_) observer_({query.view(), key.view(), bound});
  const Variable<T> out = projected_out(attention(query, key, heads.value, bound, options.terms));
  Tensor<T> weights = wanted_weights(query, key, options, bound);
  if (options.return_attention && !config_.has_head_axis) {
    const Shape shape{weights.extent(0), weights.extent(2), weights.extent(3)};
    weights = std::move(weights).reshaped(shape);
  }
  return {out, std::move(weights)};
}

template <class T>
Attended<T> MultiHeadAttention<T>::forward(const Variable<T>& query, const Variable<T>& key,
                                           const Variable<T>& value,
                                           const AttendOptions<T>& options) {
  for (const auto* input : {&query, &key, &value}) check_input(*input);
  if (key.node() == query.node() && value.node() == query.node()) {
    return attend(project_to_heads(query), options);
  }
  check_three_projections();
  const HeadColumns q{config_.num_heads, config_.head_dim};
  const HeadColumns k{config_.num_kv_heads, config_.head_dim};
  const Variable<T> projected = inputs_[0]->forward(query);
  return attend({{projected, q}, {inputs_[1]->forward(key), k}, {inputs_[2]->forward(value), k}},
                options);
}

template <class T>
typename MultiHeadAttention<T>::ProjectedHeads MultiHeadAttention<T>::project_to_heads(
    const Variable<T>& x) const {
  const HeadColumns q{config_.num_heads, config_.head_dim};
  HeadColumns k{config_.num_kv_heads, config_.head_dim};
  if (inputs_.size() == 3) {
    const Variable<T> query = inputs_[0]->forward(x);
    const Variable<T> key = inputs_[1]->forward(x);
    return {{query, q}, {key, k}, {inputs_[2]->forward(x), k}};
  }
  const Variable<T> all = inputs_.front()->forward(x);
  k.first = q.end();
  HeadColumns v = k;
  v.first = k.end();
  return {{all, q}, {all, k}, {all, v}};
}

template <class T>
Variable<T> MultiHeadAttention<T>::continue_all(std::span<KvSequence> pasts, const Variable<T>& x,
                                                const Mask& mask) const {
  refuse_divided(config_.class_name + "::continued");
  check_input(x);
  if (config_.selected_blocks || config_.feature_map) {
    throw InvalidArgument(
        fmt::format("{}: continued() of a layer with {}, which a cache of keys does not serve",
                    config_.class_name, config_.feature_map ? "a feature_map" : "selected_blocks"));
  }
  const std::int64_t length = length_of_all(config_.class_name, pasts, x);
  const NoGrad no_grad;
  const ProjectedHeads heads = project_to_heads(x);
  const Heads<T> query = turned(heads.query, length);
  AttendOptions<T> options{.mask = mask};
  const BasicAttentionOptions<T> bound = options_for(options, {});
  const Heads<T> key = turned(heads.key, length);
  Tensor<T> attended =
      append_and_attend(pasts, query.view(), key.view(), heads.value.view(), bound);
  const Variable<T> out(std::move(attended).reshaped(
      {x.extent(0), x.extent(1), config_.num_heads * config_.head_dim}));
  return out_ == nullptr ? out : out_->forward(out);
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
void CausalAttention<T>::check_length(const Variable<T>& x, std::int64_t first) const {
  if (x.rank() != 3) return;
  const std::int64_t length = length_of_sequence(this->class_name(), x.extent(1));
  if (length <= max_len_ - first) return;
  const std::string where = first == 0 ? "" : fmt::format(" from position {} on", first);
  throw InvalidArgument(fmt::format("{}: x has {} positions{} but max_len is {}",
                                    this->class_name(), length, where, max_len_));
}

template <class T>
Attended<T> CausalAttention<T>::forward(const Variable<T>& x, const AttendOptions<T>& options) {
  check_length(x, 0);
  AttendOptions<T> masked = options;
  masked.mask = masked.mask & causal();
  return mha_.forward(x, masked);
}

template <class T>
Variable<T> CausalAttention<T>::continue_all(std::span<KvSequence> pasts, const Variable<T>& x,
                                             const Mask& mask) const {
  check_length(x, pasts.empty() ? 0 : pasts.front().length());
  return mha_.continue_all(pasts, x, mask & causal());
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

}}}  // namespace heed::v0::nn
