// Embedding vectors of texts.
#include <algorithm>
#include <cmath>
#include <limits>

#include "core/float_environment.h"
#include "heed/models/model.h"
#include "models/sealing.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

// The number of tokens that go through the layers at once: enough for large products, with bounded
// memory.
constexpr std::int64_t kTokensAtOnce = 4096;

// The number of special tokens at the end that stand for no text, such as [SEP].
std::int64_t num_closing(const text::Tokenizer& tokenizer, const text::Encoding& encoding) {
  std::size_t count = 0;
  while (count < encoding.ids.size()) {
    const std::size_t i = encoding.ids.size() - 1 - count;
    const text::TextRange& range = encoding.ranges[i];
    if (range.begin != range.end || !tokenizer.is_special(encoding.ids[i])) break;
    ++count;
  }
  return static_cast<std::int64_t>(count);
}

// Cuts a text to `max_tokens` tokens; its closing special tokens stay.
void truncate(const text::Tokenizer& tokenizer, std::int64_t max_tokens, text::Encoding& encoding) {
  const auto size = static_cast<std::int64_t>(encoding.ids.size());
  if (size <= max_tokens) return;
  const std::int64_t closing = std::min(num_closing(tokenizer, encoding), max_tokens);
  const auto cut = [&](auto& items) {
    items.erase(items.begin() + (max_tokens - closing), items.end() - closing);
  };
  cut(encoding.ids);
  cut(encoding.ranges);
  cut(encoding.type_ids);
}

// The weight of a token in the sum over `tokens` tokens.
double share_of(Pooling::Kind kind, std::int64_t token, std::int64_t tokens) {
  switch (kind) {
    case Pooling::Kind::kFirstToken:
      return token == 0 ? 1 : 0;
    case Pooling::Kind::kLastToken:
      return token == tokens - 1 ? 1 : 0;
    case Pooling::Kind::kWeightedMean:
      return static_cast<double>(token + 1);
    case Pooling::Kind::kMean:
    case Pooling::Kind::kMeanSqrtLength:
    case Pooling::Kind::kMax:
      break;
  }
  return 1;
}

// The divisor of the sum over the tokens.
double divisor_of(Pooling::Kind kind, std::int64_t tokens) {
  const auto count = static_cast<double>(tokens);
  switch (kind) {
    case Pooling::Kind::kMean:
      return count;
    case Pooling::Kind::kMeanSqrtLength:
      return std::sqrt(count);
    case Pooling::Kind::kWeightedMean:
      return count * (count + 1) / 2;
    case Pooling::Kind::kFirstToken:
    case Pooling::Kind::kLastToken:
    case Pooling::Kind::kMax:
      break;
  }
  return 1;
}

// One number of a pooled vector: column i of a text's hidden states [tokens, width].
double pooled(Pooling::Kind kind, FloatView hidden, std::int64_t i) {
  const std::int64_t tokens = hidden.extent(0);
  if (kind == Pooling::Kind::kMax) {
    float largest = -std::numeric_limits<float>::infinity();
    for (std::int64_t t = 0; t < tokens; ++t) largest = std::max(largest, hidden(t, i));
    return static_cast<double>(largest);
  }
  double sum = 0;
  for (std::int64_t t = 0; t < tokens; ++t) {
    sum += share_of(kind, t, tokens) * static_cast<double>(hidden(t, i));
  }
  return sum / divisor_of(kind, tokens);
}

// The vector of one text, from the hidden states [tokens, width] of its tokens: the vectors of all
// kinds of pooling, concatenated.
void pool(const Pooling& pooling, FloatView hidden, std::span<float> out) {
  std::fill(out.begin(), out.end(), 0.0F);
  if (hidden.empty()) return;
  std::vector<double> numbers;
  double square = 0;
  for (const Pooling::Kind kind : pooling.kinds) {
    for (std::int64_t i = 0; i < hidden.extent(1); ++i) {
      numbers.push_back(pooled(kind, hidden, i));
      square += numbers.back() * numbers.back();
    }
  }
  // A vector of length 0 is not changed.
  const double scale = pooling.normalize && square > 0 ? 1 / std::sqrt(square) : 1;
  std::transform(numbers.begin(), numbers.end(), out.begin(),
                 [&](double number) { return static_cast<float>(number * scale); });
}

}  // namespace

Tensor<float> Model::embed(std::span<const std::string> texts, const EmbedOptions& options) const {
  const FloatEnvironment environment;
  const Pooling pooling = config().pooling.value_or(Pooling{});
  const std::int64_t max_tokens = std::min(pooling.max_tokens, config().max_positions);
  std::vector<text::Encoding> encodings;
  for (const std::string& text : texts) {
    truncate(tokenizer(), max_tokens,
             encodings.emplace_back(tokenizer().encode(pooling.prompt + text)));
  }
  const std::int64_t width = config().hidden_size * static_cast<std::int64_t>(pooling.kinds.size());
  auto vectors = Tensor<float>::uninitialized({static_cast<std::int64_t>(texts.size()), width});
  for (std::size_t first = 0; first < encodings.size();) {
    std::size_t last = first;
    for (std::size_t tokens = 0;
         last < encodings.size() &&
         (last == first || tokens + encodings[last].ids.size() <= kTokensAtOnce);
         ++last) {
      tokens += encodings[last].ids.size();
    }
    const Inputs inputs = Inputs::of(std::span(encodings).subspan(first, last - first));
    const Tensor<float> hidden = forward(inputs);
    for (std::size_t i = first; i < last; ++i) {
      pool(
          pooling,
          hidden.view().slice(0, inputs.boundaries[i - first], inputs.boundaries[i - first + 1]),
          {vectors.data() + static_cast<std::int64_t>(i) * width, static_cast<std::size_t>(width)});
    }
    first = last;
  }
  if (options.seal != nullptr) *options.seal = sealed_vectors(*this, texts, vectors);
  return vectors;
}

}}}  // namespace heed::v0::models
