#include "heed/inspect/model_reading.h"

#include <fmt/format.h>

#include <utility>

#include "heed/attention/mask.h"
#include "heed/core/error.h"
#include "inspect/model_texts.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

text::Encoding encoded(const models::Model& model, const std::string& text,
                       const std::optional<std::string>& pair) {
  text::Encoding encoding =
      pair ? model.tokenizer().encode_pair(text, *pair) : model.tokenizer().encode(text);
  const auto size = static_cast<std::int64_t>(encoding.ids.size());
  if (size < 1 || size > kMaxTokens) {
    throw InvalidArgument(
        fmt::format("read_layers: the text has {} tokens, expected 1 to {}", size, kMaxTokens));
  }
  return encoding;
}

Tensor<bool> visible_of(const Mask& mask, std::int64_t size) {
  return materialize_allow(mask, {.q_len = size, .kv_len = size}).reshaped({size, size});
}

bool has_other_terms(const AttentionOptions& options) {
  return options.alibi_slopes || options.bias || options.relative_bias ||
         options.relative_vectors || options.sinks;
}

// all |= more.
void join(const Tensor<bool>& more, Tensor<bool>& all) {
  for (std::int64_t i = 0; i < all.num_elements(); ++i) {
    all.data()[i] = all.data()[i] || more.data()[i];
  }
}

}  // namespace

AttendedTokens ModelReading::tokens_of(std::int64_t layer) const {
  const auto count = static_cast<std::int64_t>(layers.size());
  if (layer < 0 || layer >= count) {
    throw InvalidArgument(
        fmt::format("ModelReading::tokens_of: layer is {}, expected one of {}", layer, count));
  }
  return {.text = text,
          .token_ids = input.tokens.ids,
          .labels = input.labels,
          .weights = layers[static_cast<std::size_t>(layer)].weights,
          .visible = layers[static_cast<std::size_t>(layer)].visible};
}

ModelReading read_layers(const models::Model& model, const std::string& text,
                         const std::optional<std::string>& pair) {
  ModelReading reading;
  reading.text = pair ? text + " / " + *pair : text;
  reading.input = text_of(model.tokenizer(), encoded(model, text, pair), text,
                          pair ? std::string_view(*pair) : std::string_view());
  const std::int64_t size = reading.input.tokens.length();
  reading.visible = Tensor<bool>({size, size});
  models::ForwardOptions options;
  options.observer = [&](const models::AttentionCall& call) {
    reading.layers.push_back({.query = to_tensor(call.query.select(0, 0)),
                              .key = to_tensor(call.key.select(0, 0)),
                              .value = to_tensor(call.value.select(0, 0)),
                              .weights = models::weights_of(call),
                              .mask = call.options.mask,
                              .visible = visible_of(call.options.mask, size),
                              .scale = call.options.scale,
                              .softcap = call.options.softcap,
                              .has_other_terms = has_other_terms(call.options)});
    join(reading.layers.back().visible, reading.visible);
  };
  model.forward(inputs_of(reading.input), options);
  return reading;
}

}}}  // namespace heed::v0::inspect
