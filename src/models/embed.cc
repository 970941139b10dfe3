// Vectors of texts.
#include <algorithm>
#include <cmath>

#include "heed/models/model.h"

namespace heed::inline v0::models {

namespace {

// Tokens that go through the layers at once: enough for large products, and memory stays bounded.
constexpr std::int64_t kTokensAtOnce = 4096;

// Cut off to so many tokens, the last of which is the one that ends a text.
void truncate(text::Encoding& encoding, std::int64_t max_tokens) {
  const auto size = static_cast<std::int64_t>(encoding.ids.size());
  if (size <= max_tokens) return;
  const auto kept = static_cast<std::ptrdiff_t>(max_tokens - 1);
  encoding.ids.erase(encoding.ids.begin() + kept, encoding.ids.end() - 1);
  encoding.ranges.erase(encoding.ranges.begin() + kept, encoding.ranges.end() - 1);
  encoding.type_ids.erase(encoding.type_ids.begin() + kept, encoding.type_ids.end() - 1);
}

// The vector of one text, of its tokens' [tokens, width].
void pool(const Pooling& pooling, FloatView hidden, float* out) {
  const std::int64_t width = hidden.extent(1);
  std::fill_n(out, width, 0.0F);
  if (hidden.empty()) return;
  const std::int64_t tokens = pooling.kind == Pooling::Kind::kFirstToken ? 1 : hidden.extent(0);
  std::vector<double> sums(static_cast<std::size_t>(width));
  for (std::int64_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < width; ++i) {
      sums[static_cast<std::size_t>(i)] += static_cast<double>(hidden(token, i));
    }
  }
  double square = 0;
  for (double& sum : sums) {
    sum /= static_cast<double>(tokens);
    square += sum * sum;
  }
  // A vector of length 0 stays as it is.
  const double scale = pooling.normalize && square > 0 ? 1 / std::sqrt(square) : 1;
  for (std::int64_t i = 0; i < width; ++i) {
    out[i] = static_cast<float>(sums[static_cast<std::size_t>(i)] * scale);
  }
}

}  // namespace

Tensor<float> Model::embed(std::span<const std::string> texts) const {
  const Pooling pooling = config().pooling.value_or(Pooling{});
  const std::int64_t max_tokens = std::min(pooling.max_tokens, config().max_positions);
  std::vector<text::Encoding> encodings;
  for (const std::string& text : texts) {
    truncate(encodings.emplace_back(tokenizer().encode(text)), max_tokens);
  }
  const std::int64_t width = config().hidden_size;
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
      pool(pooling,
           hidden.view().slice(0, inputs.boundaries[i - first], inputs.boundaries[i - first + 1]),
           vectors.data() + static_cast<std::int64_t>(i) * width);
    }
    first = last;
  }
  return vectors;
}

}  // namespace heed::inline v0::models
