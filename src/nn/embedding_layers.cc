#include "heed/nn/embedding_layers.h"

#include <fmt/format.h>

#include "heed/attention/position.h"
#include "heed/core/random.h"
#include "nn/divided_tokens.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Adds to x [batch, length, d_model] the rows of table [max_len, d_model] at its positions, which
// begin at `first`.
template <class T>
Variable<T> with_positions(const std::string& layer, const Variable<T>& x, const Variable<T>& table,
                           std::int64_t first = 0) {
  if (x.rank() != 3 || x.extent(2) != table.extent(1)) {
    throw InvalidArgument(fmt::format("{}: x has shape {}, expected [batch, length, {}]", layer,
                                      to_string(x.shape()), table.extent(1)));
  }
  const std::int64_t length = length_of_sequence(layer, x.extent(1));
  if (first < 0 || length > table.extent(0) - first) {
    const std::string where = first == 0 ? "" : fmt::format(" from position {} on", first);
    throw InvalidArgument(fmt::format("{}: x has {} positions{} but max_len is {}", layer, length,
                                      where, table.extent(0)));
  }
  const Variable<T> rows = slice(table, 0, first, first + length);
  const ContextParallel* const divided = ContextParallel::current();
  return x + (divided == nullptr ? rows : embedding(divided->places(), rows));
}

}  // namespace

template <class T>
SinusoidalPositionalEncoding<T>::SinusoidalPositionalEncoding(std::int64_t d_model,
                                                              std::int64_t max_len,
                                                              std::optional<double> dropout) {
  if (dropout) dropout_ = &this->template make_module<Dropout<T>>("dropout", *dropout);
  pe_ = this->make_buffer("pe",
                          sinusoidal_encoding<T>(max_len, d_model).reshaped({1, max_len, d_model}));
}

template <class T>
Variable<T> SinusoidalPositionalEncoding<T>::forward(const Variable<T>& x, std::int64_t first) {
  const Variable<T> sum =
      with_positions(class_name(), x, reshape(pe_, {pe_.extent(1), pe_.extent(2)}), first);
  return dropout_ == nullptr ? sum : dropout_->forward(sum);
}

template <class T>
LearnedPositionalEncoding<T>::LearnedPositionalEncoding(std::int64_t d_model, std::int64_t max_len,
                                                        double dropout)
    : position_embeddings_(
          this->template make_module<Embedding<T>>("position_embeddings", max_len, d_model)),
      dropout_(this->template make_module<Dropout<T>>("dropout", dropout)) {
  default_generator().normal(position_embeddings_.weight().writable_value(), 0, 0.02);
}

template <class T>
Variable<T> LearnedPositionalEncoding<T>::forward(const Variable<T>& x, std::int64_t first) {
  return dropout_.forward(with_positions(class_name(), x, position_embeddings_.weight(), first));
}

template class TokenEmbedding<float>;
template class TokenEmbedding<double>;
template class SinusoidalPositionalEncoding<float>;
template class SinusoidalPositionalEncoding<double>;
template class LearnedPositionalEncoding<float>;
template class LearnedPositionalEncoding<double>;

}}}  // namespace heed::v0::nn
