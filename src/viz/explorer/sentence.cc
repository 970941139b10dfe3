// A sentence as data of the page, and an example of one.
#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "heed/core/error.h"
#include "heed/viz/explorer.h"
#include "viz/explorer/page.h"

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

namespace {

constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kHeadDim = 4;

// The dimensions are noun, article, action and place. Place is negative in the first half of the
// sentence and positive in the second.
Tensor<float> meanings() {
  return Tensor<float>({kTokens, kHeadDim}, {0, 2, 0, -1,   // the
                                             2, 0, 0, -1,   // cat
                                             0, 0, 2, 0,    // sat
                                             0, 0, 1, 2,    // on
                                             0, 2, 0, 1,    // the
                                             2, 0, 0, 1});  // mat
}

// The features that each token looks for, in the same dimensions.
Tensor<float> questions() {
  return Tensor<float>({kTokens, kHeadDim}, {0, 2, 0, 2,    // the: an article further on
                                             0, 0, 3, 0,    // cat: what it does
                                             2, 0, 0, -2,   // sat: a noun before it
                                             2, 0, 0, 2,    // on: a noun after it
                                             0, 2, 0, -2,   // the: an article further back
                                             0, 0, 1, 2});  // mat: the word that places it
}

// Two pairs of sine and cosine of position + `shift` for each token. A query with the encoding of
// the previous position matches that key best.
Tensor<float> positions(std::int64_t shift) {
  constexpr double kAngle = 0.7853981633974483;  // an eighth of a turn
  auto result = Tensor<float>({kTokens, kHeadDim});
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t pair = 0; pair < kHeadDim / 2; ++pair) {
      const double angle = static_cast<double>(t + shift) * kAngle * static_cast<double>(pair + 1);
      result(t, 2 * pair) = static_cast<float>(2 * std::cos(angle));
      result(t, 2 * pair + 1) = static_cast<float>(2 * std::sin(angle));
    }
  }
  return result;
}

Tensor<float> stacked(const Tensor<float>& first, const Tensor<float>& second) {
  auto result = Tensor<float>({2, kTokens, kHeadDim});
  for (std::int64_t t = 0; t < kTokens; ++t) {
    for (std::int64_t dim = 0; dim < kHeadDim; ++dim) {
      result(0, t, dim) = first(t, dim);
      result(1, t, dim) = second(t, dim);
    }
  }
  return result;
}

}  // namespace

ExplorerSentence explorer_example() {
  ExplorerSentence sentence;
  sentence.title = "Worked example";
  sentence.note =
      "Made by hand, not learned: in head 0 'sat' looks for who sat and finds 'cat', and 'the' "
      "looks for the other 'the'. Try temperature 0.1, where each token picks one, and 3.0, where "
      "the choice fades.";
  sentence.tokens = {"the", "cat", "sat", "on", "the", "mat"};
  sentence.query = stacked(questions(), positions(-1));
  sentence.key = stacked(meanings(), positions(0));
  sentence.value = stacked(meanings(), meanings());
  sentence.heads = {"meaning", "the word before"};
  sentence.opening_query = 2;
  return sentence;
}

}}  // namespace heed::v0
