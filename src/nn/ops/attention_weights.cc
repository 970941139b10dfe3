#include "heed/nn/attention_weights.h"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "core/float_environment.h"
#include "nn/divided_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Returns [batch, num_kv_heads, kv_len, kv_len]: value k has a 1 in dimension k.
template <class T>
Variable<T> unit_values(const Variable<T>& key) {
  if (key.rank() != 4) {
    throw InvalidArgument(fmt::format(
        "attention: key has shape {}, expected 4 dimensions [batch, heads, length, dim]",
        to_string(key.shape())));
  }
  const Shape shape = key.shape();
  Tensor<T> values({shape[0], shape[1], shape[2], shape[2]});
  const std::int64_t rows = shape[0] * shape[1] * shape[2];
  for (std::int64_t row = 0; row < rows; ++row) {
    values.data()[row * shape[2] + row % shape[2]] = 1;
  }
  return Variable<T>(std::move(values));
}

}  // namespace

template <class T>
Variable<T> attention_weights(const Variable<T>& query, const Variable<T>& key,
                              const BasicAttentionOptions<T>& options,
                              const LearnedTerms<T>& learned) {
  const FloatEnvironment environment;
  refuse_divided("attention_weights");
  BasicAttentionOptions<T> of_weights = options;
  of_weights.dropout = {};
  LearnedTerms<T> terms = learned;
  terms.relative_value = {};
  if (of_weights.relative_vectors) {
    of_weights.relative_vectors->value = std::nullopt;
    const bool has_keys = of_weights.relative_vectors->key || terms.relative_key.is_defined();
    if (!has_keys) of_weights.relative_vectors = std::nullopt;
  }
  return attention(query, key, unit_values(key), of_weights, terms);
}

template HEED_API Variable<float> attention_weights(const Variable<float>&, const Variable<float>&,
                                                    const AttentionOptions&,
                                                    const LearnedTerms<float>&);
template HEED_API Variable<double> attention_weights(const Variable<double>&,
                                                     const Variable<double>&,
                                                     const AttentionOptions64&,
                                                     const LearnedTerms<double>&);

}}}  // namespace heed::v0::nn
