#include "heed/inspect/model_reading.h"

#include <fmt/format.h>

#include <utility>

#include "heed/error.h"
#include "heed/mask.h"

namespace heed::inline v0::inspect {

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

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Numbers the words of a text, and gives each token that of its first byte that is no space.
std::vector<std::int64_t> words_of(const std::string& text, const text::Encoding& encoding) {
  std::vector<std::int64_t> word_at(text.size(), -1);  // of each byte
  std::int64_t word = -1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_space(text[i])) continue;
    if (i == 0 || is_space(text[i - 1])) ++word;
    word_at[i] = word;
  }
  std::vector<std::int64_t> words;
  for (const text::TextRange& range : encoding.ranges) {
    words.push_back(-1);
    for (std::int64_t i = range.begin; i < range.end && words.back() < 0; ++i) {
      words.back() = word_at[static_cast<std::size_t>(i)];
    }
  }
  return words;
}

}  // namespace

AttendedTokens ModelReading::tokens_of(std::int64_t layer) const {
  const auto count = static_cast<std::int64_t>(layers.size());
  if (layer < 0 || layer >= count) {
    throw InvalidArgument(
        fmt::format("ModelReading::tokens_of: layer is {}, expected one of {}", layer, count));
  }
  return {.text = text,
          .token_ids = encoding.ids,
          .labels = labels,
          .weights = layers[static_cast<std::size_t>(layer)].weights,
          .visible = visible};
}

ModelReading read_layers(const models::Model& model, const std::string& text,
                         const std::optional<std::string>& pair) {
  ModelReading reading;
  reading.text = pair ? text + " / " + *pair : text;
  reading.encoding = encoded(model, text, pair);
  for (const std::int64_t id : reading.encoding.ids) {
    reading.labels.push_back(model.tokenizer().label(id));
  }
  if (!pair) reading.words = words_of(text, reading.encoding);
  const auto size = static_cast<std::int64_t>(reading.encoding.ids.size());
  models::ForwardOptions options;
  options.observer = [&](const models::AttentionCall& call) {
    reading.layers.push_back({.query = to_tensor(call.query.select(0, 0)),
                              .key = to_tensor(call.key.select(0, 0)),
                              .weights = models::weights_of(call)});
    if (call.layer > 0) return;
    reading.mask = call.options.mask;
    reading.visible = materialize_allow(call.options.mask, {.q_len = size, .kv_len = size})
                          .reshaped({size, size});
  };
  model.forward(models::Inputs::of(reading.encoding), options);
  return reading;
}

}  // namespace heed::inline v0::inspect
