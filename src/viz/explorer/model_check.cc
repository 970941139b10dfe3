#include <fmt/format.h>

#include <cmath>
#include <string>

#include "heed/core/error.h"
#include "viz/explorer/model_layers.h"

namespace heed { inline namespace v0 { namespace explorer {

namespace {

constexpr std::int64_t kMostModelTokens = 1024;

// The place of an argument, for errors: the function and the argument's name.
struct Place {
  const char* function;
  std::string argument;

  Place member(const std::string& name) const { return {function, argument + name}; }

  template <class Found>
  [[noreturn]] void refuse(const Found& found, const std::string& expected) const {
    throw InvalidArgument(
        fmt::format("{}: {} is {}, expected {}", function, argument, found, expected));
  }
};

void check_numbers(const Place& place, const Tensor<float>& array) {
  for (const float number : array.elements()) {
    if (!std::isfinite(number)) place.refuse(number, "finite numbers");
  }
}

void check_query_and_key(const Place& place, const LayerAttention& layer, const ModelShape& shape) {
  const std::int64_t heads = shape.num_heads;
  const std::int64_t tokens = shape.num_tokens;
  const Shape& query = layer.query.shape();
  if (query.rank() != 3 || query[0] != heads || query[1] != tokens || query[2] < 1) {
    place.member(".query").refuse(to_string(query),
                                  fmt::format("[{}, {}, head_dim]", heads, tokens));
  }
  const Shape& key = layer.key.shape();
  if (key.rank() != 3 || key[0] < 1 || heads % key[0] != 0 || key[1] != tokens ||
      key[2] != query[2]) {
    place.member(".key").refuse(to_string(key),
                                fmt::format("[a divisor of {}, {}, {}]", heads, tokens, query[2]));
  }
  check_numbers(place.member(".query"), layer.query);
  check_numbers(place.member(".key"), layer.key);
}

void check_weights(const Place& place, const LayerAttention& layer, const ModelShape& shape) {
  const Shape expected{shape.num_heads, shape.num_tokens, shape.num_tokens};
  if (layer.weights.shape() != expected) {
    place.refuse(to_string(layer.weights.shape()), to_string(expected));
  }
  const Tensor<bool> visible = visible_keys(layer, shape.num_tokens);
  const std::int64_t cells = visible.num_elements();
  for (std::int64_t i = 0; i < layer.weights.num_elements(); ++i) {
    const float weight = layer.weights.data()[i];
    if (!(weight >= 0 && weight <= 1.01F)) place.refuse(weight, "numbers from 0 to 1");
    if (weight > 0 && !visible.data()[i % cells]) {
      place.refuse(weight,
                   fmt::format("0 where the mask {} hides the key: head {}, query {}, key {}",
                               layer.mask.description(), i / cells, i % cells / shape.num_tokens,
                               i % shape.num_tokens));
    }
  }
}

void check_value(const Place& place, const Tensor<float>& value, const ModelShape& shape) {
  const Shape& found = value.shape();
  if (found.rank() != 3 || found[0] < 1 || shape.num_heads % found[0] != 0 ||
      found[1] != shape.num_tokens || found[2] < 1) {
    place.refuse(to_string(found), fmt::format("[a divisor of {}, {}, value_dim], or nothing",
                                               shape.num_heads, shape.num_tokens));
  }
  check_numbers(place, value);
}

void check_layer(const Place& place, const LayerAttention& layer, const ModelShape& shape) {
  if (layer.query.empty() != layer.key.empty()) {
    place.member(".key").refuse(to_string(layer.key.shape()), "query and key, or neither");
  }
  if (layer.query.empty() == layer.weights.empty()) {
    place.member(".weights")
        .refuse(layer.weights.empty() ? "empty" : "given",
                "either query and key, or weights, and not both");
  }
  if (layer.scale && !std::isfinite(*layer.scale)) {
    place.member(".scale").refuse(*layer.scale, "a finite number");
  }
  if (!(layer.softcap >= 0) || !std::isfinite(layer.softcap)) {
    place.member(".softcap").refuse(layer.softcap, "0 or a positive number");
  }
  if (layer.query.empty()) {
    check_weights(place.member(".weights"), layer, shape);
  } else {
    check_query_and_key(place, layer, shape);
  }
  if (!layer.value.empty()) check_value(place.member(".value"), layer.value, shape);
}

void check_scores(const Place& place, const HeadScore& score, const ModelShape& shape) {
  const Shape expected{shape.num_layers, shape.num_heads};
  if (score.values.shape() != expected) {
    place.refuse(to_string(score.values.shape()), to_string(expected));
  }
  check_numbers(place, score.values);
}

void check_index(const Place& place, std::int64_t index, std::int64_t count) {
  if (index < 0 || index >= count) place.refuse(index, fmt::format("0 to {}", count - 1));
}

}  // namespace

ModelShape check_layers(const char* function, const std::vector<LayerAttention>& layers) {
  if (layers.empty()) Place{function, "layers"}.refuse("empty", "at least one");
  const Tensor<float>& first =
      layers.front().query.empty() ? layers.front().weights : layers.front().query;
  if (first.rank() != 3 || first.empty()) {
    Place{function, layers.front().query.empty() ? "layers[0].weights" : "layers[0].query"}.refuse(
        to_string(first.shape()), "[num_heads, T, head_dim], or [num_heads, T, T] of weights");
  }
  const ModelShape shape{static_cast<std::int64_t>(layers.size()), first.extent(0),
                         first.extent(1)};
  for (std::size_t i = 0; i < layers.size(); ++i) {
    check_layer({function, fmt::format("layers[{}]", i)}, layers[i], shape);
  }
  return shape;
}

ModelShape check_model(const char* function, const ModelAttention& model) {
  const auto num_tokens = static_cast<std::int64_t>(model.tokens.size());
  if (num_tokens < 1 || num_tokens > kMostModelTokens) {
    Place{function, "tokens"}.refuse(fmt::format("{} texts", num_tokens),
                                     fmt::format("1 to {}", kMostModelTokens));
  }
  const ModelShape shape = check_layers(function, model.layers);
  if (shape.num_tokens != num_tokens) {
    Place{function, "tokens"}.refuse(fmt::format("{} texts", num_tokens),
                                     fmt::format("{}, as layers[0] has", shape.num_tokens));
  }
  if (!model.words.empty() && model.words.size() != model.tokens.size()) {
    Place{function, "words"}.refuse(fmt::format("{} numbers", model.words.size()),
                                    fmt::format("{} or none", num_tokens));
  }
  for (std::size_t i = 0; i < model.scores.size(); ++i) {
    check_scores({function, fmt::format("scores[{}].values", i)}, model.scores[i], shape);
  }
  check_index({function, "opening_layer"}, model.opening_layer.value_or(0), shape.num_layers);
  check_index({function, "opening_head"}, model.opening_head.value_or(0), shape.num_heads);
  check_index({function, "opening_query"}, model.opening_query.value_or(0), num_tokens);
  return shape;
}

Tensor<bool> visible_keys(const LayerAttention& layer, std::int64_t num_tokens) {
  const Tensor<bool> visible =
      materialize_allow(layer.mask, {.q_len = num_tokens, .kv_len = num_tokens});
  return Tensor<bool>({num_tokens, num_tokens}, visible.elements());
}

}}}  // namespace heed::v0::explorer
