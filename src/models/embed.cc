// Embedding vectors of texts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/float_environment.h"
#include "heed/core/elementary.h"
#include "heed/models/model.h"
#include "models/graph.h"
#include "models/kernels/row_functions.h"
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
  const bool scales = pooling.normalize && pooling.dense.empty() && square > 0;
  const double scale = scales ? 1 / std::sqrt(square) : 1;
  std::transform(numbers.begin(), numbers.end(), out.begin(),
                 [&](double number) { return static_cast<float>(number * scale); });
}

void activate(PooledDense::Activation activation, std::span<float> row) {
  switch (activation) {
    case PooledDense::Activation::kIdentity:
      return;
    case PooledDense::Activation::kTanh:
      for (float& x : row) x = static_cast<float>(elementary::tanh(static_cast<double>(x)));
      return;
    case PooledDense::Activation::kRelu:
      return row_functions().relu(row.data(), std::ssize(row));
    case PooledDense::Activation::kGelu:
      return row_functions().gelu(row.data(), std::ssize(row));
  }
}

void normalize(std::span<float> row) {
  double square = 0;
  for (const float x : row) square += static_cast<double>(x) * static_cast<double>(x);
  if (square == 0) return;
  for (float& x : row) x = static_cast<float>(static_cast<double>(x) / std::sqrt(square));
}

// The vectors behind the products that follow pooling.
Tensor<float> through_dense(const std::vector<Projection>& dense, const Pooling& pooling,
                            Tensor<float> vectors) {
  const std::int64_t texts = vectors.extent(0);
  for (std::size_t i = 0; i < dense.size(); ++i) {
    auto next = Tensor<float>::uninitialized({texts, dense[i].weight.rows()});
    dense[i].apply(vectors, next);
    for (std::int64_t t = 0; t < texts; ++t) {
      activate(pooling.dense[i].activation, next.view().select(0, t).elements());
    }
    vectors = std::move(next);
  }
  for (std::int64_t t = 0; pooling.normalize && t < texts; ++t) {
    normalize(vectors.view().select(0, t).elements());
  }
  return vectors;
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
  if (!pooling.dense.empty()) vectors = through_dense(parts_->dense, pooling, std::move(vectors));
  if (options.seal != nullptr) *options.seal = sealed_vectors(*this, texts, vectors);
  return vectors;
}

}}}  // namespace heed::v0::models
