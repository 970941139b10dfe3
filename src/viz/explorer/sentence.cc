#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "heed/core/error.h"
#include "heed/viz/explorer.h"
#include "viz/explorer/page_json.h"

namespace heed { inline namespace v0 {

namespace {

using explorer::encoded;
using explorer::to_json;

constexpr std::int64_t kMaxEmbeddedWeights = 1 << 16;

template <class Found>
[[noreturn]] void refuse(const char* field, const Found& found, const std::string& expected) {
  throw InvalidArgument(
      fmt::format("explorer_json: {} is {}, expected {}", field, found, expected));
}

std::int64_t num_heads_of(const ExplorerSentence& sentence) {
  const Tensor<float>& array = sentence.query.empty() ? sentence.weights : sentence.query;
  return array.rank() == 3 ? array.extent(0) : 0;
}

std::int64_t num_queries(const ExplorerSentence& sentence) {
  return static_cast<std::int64_t>(sentence.tokens.size());
}

std::int64_t num_keys(const ExplorerSentence& sentence) {
  const auto& keys = sentence.keys.empty() ? sentence.tokens : sentence.keys;
  return static_cast<std::int64_t>(keys.size());
}

// Checks [num_heads, length, width]; a width of 0 accepts any.
void check_array(const char* field, const Tensor<float>& array, std::int64_t heads,
                 std::int64_t length, std::int64_t width = 0) {
  const bool fits = array.rank() == 3 && heads > 0 && array.extent(0) == heads &&
                    array.extent(1) == length && array.extent(2) > 0 &&
                    (width == 0 || array.extent(2) == width);
  if (!fits) {
    refuse(
        field, to_string(array.shape()),
        fmt::format("[{}, {}, {}] for {} tokens", heads > 0 ? fmt::to_string(heads) : "num_heads",
                    length, width > 0 ? fmt::to_string(width) : "width", length));
  }
  for (const float number : array.elements()) {
    if (!std::isfinite(number)) refuse(field, number, "finite numbers");
  }
}

void check_arrays(const ExplorerSentence& sentence) {
  const std::int64_t heads = num_heads_of(sentence);
  const std::int64_t queries = num_queries(sentence);
  const std::int64_t keys = num_keys(sentence);
  if (sentence.query.empty() != sentence.key.empty()) {
    refuse("key", to_string(sentence.key.shape()), "query and key, or neither");
  }
  if (sentence.query.empty() && sentence.weights.empty()) {
    refuse("weights", "empty", "weights where there is no query and key");
  }
  if (!sentence.query.empty()) {
    check_array("query", sentence.query, heads, queries);
    check_array("key", sentence.key, heads, keys, sentence.query.extent(2));
  }
  if (!sentence.value.empty()) check_array("value", sentence.value, heads, keys);
  if (!sentence.weights.empty()) {
    check_array("weights", sentence.weights, heads, queries, keys);
    for (const float weight : sentence.weights.elements()) {
      if (weight < 0) refuse("weights", weight, "numbers from 0");
    }
  }
  if (!sentence.visible.empty() && sentence.visible.shape() != Shape{queries, keys}) {
    refuse("visible", to_string(sentence.visible.shape()), fmt::format("[{}, {}]", queries, keys));
  }
}

void check(const ExplorerSentence& sentence) {
  if (sentence.tokens.empty()) refuse("tokens", "empty", "at least one");
  check_arrays(sentence);
  const auto heads = static_cast<std::size_t>(num_heads_of(sentence));
  if (!sentence.heads.empty() && sentence.heads.size() != heads) {
    refuse("heads", fmt::format("{} names", sentence.heads.size()),
           fmt::format("{} or none", heads));
  }
  if (!(sentence.temperature > 0) || !std::isfinite(sentence.temperature)) {
    refuse("temperature", sentence.temperature, "a positive number");
  }
  const auto length = static_cast<std::int64_t>(sentence.tokens.size());
  const std::int64_t opening = sentence.opening_query.value_or(0);
  if (opening < 0 || opening >= length) {
    refuse("opening_query", opening, fmt::format("0 to {}", length - 1));
  }
  if (sentence.scale && !std::isfinite(*sentence.scale)) {
    refuse("scale", *sentence.scale, "a finite number");
  }
  if (sentence.d_model < 2 || sentence.d_model % 2 != 0) {
    refuse("d_model", sentence.d_model, "an even number from 2");
  }
}

}  // namespace

std::string explorer_json(const ExplorerSentence& sentence) {
  check(sentence);
  const auto length = static_cast<std::int64_t>(sentence.tokens.size());
  std::map<std::string, std::string> members{
      {"title", to_json(sentence.title)},
      {"note", to_json(sentence.note)},
      {"tokens", to_json(sentence.tokens)},
      {"keys", to_json(sentence.keys)},
      {"numHeads", fmt::to_string(num_heads_of(sentence))},
      {"headNames", to_json(sentence.heads)},
      {"mask", encoded(sentence.visible)},
      {"maskName", to_json(sentence.mask)},
      {"temperature", to_json(sentence.temperature)},
      {"openingQuery", fmt::to_string(sentence.opening_query.value_or(length - 1))},
      {"dModel", fmt::to_string(sentence.d_model)}};
  if (!sentence.query.empty()) {
    const auto head_dim = static_cast<double>(sentence.query.extent(2));
    members["headDim"] = fmt::to_string(sentence.query.extent(2));
    members["scale"] = to_json(sentence.scale.value_or(1 / std::sqrt(head_dim)));
    members["query"] = encoded(sentence.query);
    members["key"] = encoded(sentence.key);
  }
  if (!sentence.value.empty()) {
    members["valueDim"] = fmt::to_string(sentence.value.extent(2));
    members["value"] = encoded(sentence.value);
  }
  if (!sentence.weights.empty() &&
      (sentence.query.empty() || sentence.weights.num_elements() <= kMaxEmbeddedWeights)) {
    members["weights"] = encoded(sentence.weights);
  }
  return explorer::to_json(members);
}

}}  // namespace heed::v0
