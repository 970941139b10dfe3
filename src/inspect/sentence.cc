#include "heed/inspect/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "heed/attention/position.h"
#include "heed/core/error.h"
#include "heed/core/random.h"
#include "heed/text/word_tokenizer.h"

namespace heed { inline namespace v0 { namespace inspect {

namespace {

// The sentence without surrounding whitespace, which would be tokens of its own.
std::string trimmed(const std::string& text) {
  constexpr const char* kSpaces = " \t\r\n\v\f";
  const std::size_t begin = text.find_first_not_of(kSpaces);
  if (begin == text.npos) {
    throw InvalidArgument(fmt::format("the sentence has no words, expected 1 to {}", kMaxTokens));
  }
  return text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
}

void check_length(std::int64_t num_tokens) {
  if (num_tokens <= kMaxTokens) return;
  throw InvalidArgument(
      fmt::format("the sentence has {} tokens (words and punctuation marks), expected 1 to {}",
                  num_tokens, kMaxTokens));
}

Tensor<float> embed(const std::vector<std::int64_t>& token_ids, std::int64_t vocab_size,
                    const SentenceSettings& settings, TorchGenerator& generator) {
  const auto num_tokens = static_cast<std::int64_t>(token_ids.size());
  const auto table = embedding_weight(generator, vocab_size, settings.d_model);
  Tensor<float> vectors = embedding({token_ids.data(), Shape{num_tokens}}, table);
  if (!settings.has_positions) return vectors;
  return add_positions(vectors, sinusoidal_encoding(num_tokens, settings.d_model));
}

// Replaces rows [..., keys] by their limit at temperature 0: equal weights for the largest entries;
// a row that sees nothing stays 0.
void harden(Tensor<float>& weights) {
  const auto all = weights.elements();
  const auto keys = static_cast<std::size_t>(weights.extent(-1));
  for (std::size_t row = 0; row < all.size(); row += keys) {
    const auto cells = all.subspan(row, keys);
    const float largest = *std::max_element(cells.begin(), cells.end());
    if (largest == 0) continue;
    const auto count = static_cast<float>(std::count(cells.begin(), cells.end(), largest));
    for (float& cell : cells) cell = cell == largest ? 1 / count : 0;
  }
}

void check_temperature(double temperature) {
  if (std::isfinite(temperature) && temperature >= 0) return;
  throw InvalidArgument(
      fmt::format("temperature is {}, expected a finite number from 0", temperature));
}

}  // namespace

SentenceAttention attend(const std::string& text, const SentenceSettings& settings) {
  SentenceAttention result;
  check_temperature(settings.temperature);
  result.text = trimmed(text);
  result.settings = settings;
  const text::WordTokenizer tokenizer(result.text);
  result.token_ids = tokenizer.ids(result.text);
  result.labels = tokenizer.labels(result.token_ids);
  const std::int64_t num_tokens = result.num_tokens();
  check_length(num_tokens);

  TorchGenerator generator(settings.seed);
  result.vectors = embed(result.token_ids, tokenizer.vocab_size(), settings, generator);
  result.parameters = attention_init(generator, settings.d_model, settings.d_model);
  const bool is_hard = settings.temperature == 0;
  const double scale = 1 / (std::sqrt(static_cast<double>(settings.head_dim())) *
                            (is_hard ? 1 : settings.temperature));
  const FloatView x = result.vectors.view().to_rank(3);
  auto attended = multi_head_attention(x, x, result.parameters, settings.num_heads,
                                       {.mask = settings.mask, .scale = static_cast<float>(scale)});
  result.weights =
      std::move(attended.weights).reshaped({settings.num_heads, num_tokens, num_tokens});
  if (is_hard) harden(result.weights);
  result.visible = materialize_allow(settings.mask, {.q_len = num_tokens, .kv_len = num_tokens})
                       .reshaped({num_tokens, num_tokens});
  return result;
}

}}}  // namespace heed::v0::inspect
