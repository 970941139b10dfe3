#include "heed/models/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/float_environment.h"
#include "heed/attention/statistics.h"
#include "heed/core/cancellation.h"
#include "heed/core/elementary.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "heed/core/tensor.h"
#include "models/graph.h"
#include "nn/ops/vector_loops.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

std::span<const float>::iterator first_that_is_no_number(std::span<const float> numbers) {
  return std::find_if_not(numbers.begin(), numbers.end(), [](float x) { return std::isfinite(x); });
}

void refuse_weights(const Model::Parts& parts) {
  for (const std::string& name : parts.tensors) {
    const Tensor<float> weights = to_float(parts.checkpoint->tensor(name));
    const std::span<const float> elements = weights.elements();
    const auto found = first_that_is_no_number(elements);
    if (found == elements.end()) continue;
    throw FormatError(
        parts.checkpoint->name(), 0,
        fmt::format("tensor {} of shape {} holds {} as element {}, expected finite "
                    "numbers; the file is damaged, or training went wrong",
                    name, to_string(weights.shape()), *found, found - elements.begin()));
  }
}

// If a result has an element that is infinite or NaN, throws FormatError naming the first tensor
// with such an element, or InvalidArgument if all weights are finite. Weights are checked only in
// this case.
void check_finite(const char* function, const Model::Parts& parts, FloatView result) {
  const std::span<const float> numbers(result.data(),
                                       static_cast<std::size_t>(result.num_elements()));
  if (first_that_is_no_number(numbers) == numbers.end()) return;
  refuse_weights(parts);
  throw InvalidArgument(
      fmt::format("{}: the result holds infinite numbers or NaN though all weights are finite: of "
                  "these ids the "
                  "model computes numbers beyond float32",
                  function));
}

// The layers whose weights are their own.
std::span<const TransformerLayer> layers_with_weights(const Model::Parts& parts) {
  return std::span(parts.layers).first(parts.config.shares_layers ? 1 : parts.layers.size());
}

// Calls use(matrix) for every matrix that has its own weights.
template <class Use>
void for_each_matrix(const Model::Parts& parts, Use use) {
  use(parts.tokens);
  use(parts.positions);
  use(parts.token_types);
  use(parts.embedding_projection.weight);
  if (!parts.config.has_tied_head) use(parts.head.weight);
  for (const TransformerLayer& layer : layers_with_weights(parts)) {
    layer.for_each_projection([&](const Projection& part) { use(part.weight); });
  }
}

// The number of elements of all vectors: norms and biases.
std::int64_t num_vector_elements(const Model::Parts& parts) {
  std::int64_t count = 0;
  const auto add = [&](const Tensor<float>& vector) { count += vector.num_elements(); };
  const auto add_norm = [&](const Norm& norm) { add(norm.weight), add(norm.bias); };
  add_norm(parts.embedding_norm);
  add_norm(parts.final_norm);
  add(parts.head.bias);
  add(parts.embedding_projection.bias);
  add(parts.position_bias);
  for (const TransformerLayer& layer : layers_with_weights(parts)) {
    for (const PartNorms* norms : {&layer.attention_norms, &layer.cross_norms, &layer.mlp_norms}) {
      for (const Norm* norm : {&norms->before, &norms->after, &norms->after_sum}) add_norm(*norm);
    }
    add_norm(layer.query_norm);
    add_norm(layer.key_norm);
    layer.for_each_projection([&](const Projection& part) { add(part.bias); });
  }
  return count;
}

void check_switched_off(const ModelConfig& config, const ForwardOptions& options) {
  for (const HeadIndex& head : options.switched_off) {
    if (head.layer >= 0 && head.layer < config.num_layers && head.head >= 0 &&
        head.head < config.num_heads) {
      continue;
    }
    throw InvalidArgument(
        fmt::format("Model::forward: switched_off has head {}.{}, expected layers in [0, {}) and "
                    "heads in [0, {})",
                    head.layer, head.head, config.num_layers, config.num_heads));
  }
}

}  // namespace

Tensor<float> weights_of(const AttentionCall& call) {
  const FloatEnvironment environment;
  const std::int64_t num_heads = call.query.extent(1);
  const std::int64_t length = call.query.extent(2);
  std::vector<AttentionRow> rows;
  for (std::int64_t head = 0; head < num_heads; ++head) {
    for (std::int64_t query = 0; query < length; ++query) {
      rows.push_back({.batch = 0, .head = head, .query = query});
    }
  }
  return attention_weights(call.query, call.key, rows, call.options)
      .reshaped({num_heads, length, call.key.extent(2)});
}

Inputs Inputs::of(std::vector<std::int64_t> ids) {
  const auto size = static_cast<std::int64_t>(ids.size());
  return {.ids = std::move(ids), .boundaries = {0, size}};
}

Inputs Inputs::of(const text::Encoding& encoding) { return of(std::span(&encoding, 1)); }

Inputs Inputs::of(std::span<const text::Encoding> encodings) {
  Inputs inputs{.ids = {}, .boundaries = {0}};
  for (const text::Encoding& encoding : encodings) {
    inputs.ids.insert(inputs.ids.end(), encoding.ids.begin(), encoding.ids.end());
    inputs.type_ids.insert(inputs.type_ids.end(), encoding.type_ids.begin(),
                           encoding.type_ids.end());
    inputs.boundaries.push_back(static_cast<std::int64_t>(inputs.ids.size()));
  }
  const bool has_types = std::any_of(inputs.type_ids.begin(), inputs.type_ids.end(),
                                     [](std::int64_t id) { return id != 0; });
  if (!has_types) inputs.type_ids.clear();
  return inputs;
}

Model::Model(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}

const ModelConfig& Model::config() const noexcept { return parts_->config; }
const text::Tokenizer& Model::tokenizer() const noexcept { return *parts_->tokenizer; }

std::int64_t Model::num_parameters() const noexcept {
  std::int64_t count = num_vector_elements(*parts_);
  for_each_matrix(*parts_,
                  [&](const WeightMatrix& matrix) { count += matrix.rows() * matrix.columns(); });
  if (parts_->encoder) {
    count += encoder().num_parameters() - config().vocab_size * config().hidden_size;
  }
  return count;
}

std::int64_t Model::num_bytes() const noexcept {
  std::int64_t bytes = num_vector_elements(*parts_) * static_cast<std::int64_t>(sizeof(float));
  for_each_matrix(*parts_, [&](const WeightMatrix& matrix) { bytes += matrix.num_bytes(); });
  if (parts_->encoder) bytes += encoder().num_bytes() - parts_->tokens.num_bytes();
  return bytes;
}

Tensor<float> Model::forward(const Inputs& inputs, const ForwardOptions& options) const {
  const FloatEnvironment environment;
  const PassInputs pass{inputs.ids, inputs.boundaries, inputs.type_ids, nullptr, options.source};
  check_inputs("Model::forward", config(), pass);
  check_switched_off(config(), options);
  Tensor<float> hidden = run_graph(*parts_, pass, options);
  check_finite("Model::forward", *parts_, hidden);
  return hidden;
}

Model Model::encoder() const {
  if (parts_->encoder) return Model(parts_->encoder);
  throw InvalidArgument(
      fmt::format("Model::encoder: a model of architecture {} has no encoder beside its layers",
                  config().architecture));
}

Source Model::read_source(std::span<const std::int64_t> ids) const {
  const FloatEnvironment environment;
  Source source{
      .hidden = encoder().forward(Inputs::of({ids.begin(), ids.end()})), .keys = {}, .values = {}};
  const Shape shape{source.hidden.extent(0), config().num_heads, config().head_dim};
  for (const TransformerLayer& layer : parts_->layers) {
    for (const auto& [projection, all] : {std::pair{&layer.cross_key, &source.keys},
                                          std::pair{&layer.cross_value, &source.values}}) {
      auto rows = Tensor<float>::uninitialized({shape[0], shape[1] * shape[2]});
      projection->apply(source.hidden, rows);
      all->push_back(std::move(rows).reshaped(shape));
    }
  }
  return source;
}

nn::Past Model::make_past(const PastOptions& options) const {
  if (!config().is_causal()) {
    throw InvalidArgument("Model::make_past: the model is an encoder, which reads whole texts");
  }
  const KvConfig storage{.num_kv_heads = config().num_kv_heads,
                         .head_dim = config().head_dim,
                         .key_storage = options.key_storage,
                         .value_storage = options.value_storage};
  std::vector<KvSequence> layers;
  for (std::int64_t i = 0; i < config().num_layers; ++i) layers.emplace_back(storage);
  return nn::Past(std::move(layers));
}

Tensor<float> Model::forward(std::span<const std::int64_t> ids, nn::Past& past,
                             const ForwardOptions& options) const {
  const FloatEnvironment environment;
  if (options.observer || options.cross_observer) {
    throw InvalidArgument("Model::forward: an observer goes with whole texts, not with a past");
  }
  if (past.num_texts() != 1 || past.num_layers() != config().num_layers) {
    throw InvalidArgument(
        fmt::format("Model::forward: past has {} texts and {} layers, expected 1 and {}",
                    past.num_texts(), past.num_layers(), config().num_layers));
  }
  const std::int64_t boundaries[] = {0, static_cast<std::int64_t>(ids.size())};
  const PassInputs pass{ids, boundaries, {}, &past, options.source};
  check_inputs("Model::forward", config(), pass);
  check_switched_off(config(), options);
  const std::int64_t before = past.length();
  try {
    Tensor<float> hidden = run_graph(*parts_, pass, options);
    check_finite("Model::forward", *parts_, hidden);
    return hidden;
  } catch (...) {
    // Some layers have already appended the tokens to the past; removes them.
    for (std::int64_t i = 0; i < past.num_layers(); ++i) past.layer(i).front().truncate(before);
    throw;
  }
}

namespace {

// logit = scale · logit, in place.
void multiply_by(double scale, Tensor<float>& logits) {
  for (float& logit : logits.elements()) logit *= static_cast<float>(scale);
}

// logit = limit · tanh(logit / limit), in place.
void cap(Tensor<float>& logits, double limit) {
  constexpr std::int64_t kAtOnce = 4096;
  const std::span<float> all = logits.elements();
  parallel_for(0, std::ssize(all), kAtOnce, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) {
      float& logit = all[static_cast<std::size_t>(i)];
      logit = static_cast<float>(limit * elementary::tanh(static_cast<double>(logit) / limit));
    }
  });
}

}  // namespace

bool Model::has_head() const noexcept { return parts_->head.weight.rows() > 0; }

Tensor<float> Model::logits(FloatView hidden) const {
  const FloatEnvironment environment;
  if (!has_head()) throw InvalidArgument("Model::logits: the model has no head that scores tokens");
  if (hidden.rank() != 2 || hidden.extent(1) != config().hidden_size) {
    throw InvalidArgument(fmt::format("Model::logits: hidden has shape {}, expected [n, {}]",
                                      to_string(hidden.shape()), config().hidden_size));
  }
  auto logits = Tensor<float>::uninitialized({hidden.extent(0), config().vocab_size});
  parts_->head.apply(hidden, logits);
  if (config().logit_scale != 1) multiply_by(config().logit_scale, logits);
  if (config().logit_softcap) cap(logits, *config().logit_softcap);
  check_finite("Model::logits", *parts_, logits);
  return logits;
}

namespace {

// Rows of logits computed at once; each has one number per token of the vocabulary.
constexpr std::int64_t kRowsAtOnce = 64;

// −ln p of a token, from one row of logits, which is overwritten.
double loss_of(float* logits, std::int64_t size, std::int64_t token) {
  const nn::VectorLoops<float>& loops = nn::vector_loops<float>();
  const float largest = loops.largest(logits, size);
  const float chosen = logits[token];
  const double sum = loops.exp_and_sum(logits, largest, size, logits);
  return elementary::log(sum) + static_cast<double>(largest) - static_cast<double>(chosen);
}

}  // namespace

double sum_of_losses(const Model& model, FloatView hidden, std::span<const std::int64_t> ids,
                     std::int64_t first) {
  const auto size = static_cast<std::int64_t>(ids.size());
  double total = 0;
  for (std::int64_t begin = first; begin < size; begin += kRowsAtOnce) {
    check_cancelled();
    const std::int64_t end = std::min(begin + kRowsAtOnce, size);
    Tensor<float> logits = model.logits(hidden.slice(0, begin - 1, end - 1));
    const std::int64_t vocabulary = logits.extent(1);
    for (std::int64_t t = begin; t < end; ++t) {
      total += loss_of(logits.data() + (t - begin) * vocabulary, vocabulary,
                       ids[static_cast<std::size_t>(t)]);
    }
  }
  return total;
}

double mean_loss(const Model& model, std::span<const std::int64_t> ids,
                 const ForwardOptions& options) {
  const FloatEnvironment environment;
  if (ids.size() < 2) {
    throw InvalidArgument(
        fmt::format("mean_loss: ids has {} tokens, expected at least 2", ids.size()));
  }
  const Tensor<float> hidden = model.forward(Inputs::of({ids.begin(), ids.end()}), options);
  return settled(sum_of_losses(model, hidden, ids, 1) / static_cast<double>(ids.size() - 1));
}

}}}  // namespace heed::v0::models
