#include "heed/nn/layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "heed/core/random.h"
#include "heed/nn/init.h"
#include "nn/python_repr.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// Formats e.g. (3,) or (2, 3).
std::string python_tuple(const Shape& shape) {
  return fmt::format("({}{})", fmt::join(shape.begin(), shape.end(), ", "),
                     shape.rank() == 1 ? "," : "");
}

template <class T>
Tensor<T> filled(const Shape& shape, T element) {
  Tensor<T> result(shape);
  std::fill_n(result.data(), result.num_elements(), element);
  return result;
}

}  // namespace

template <class T>
Linear<T>::Linear(std::int64_t in_features, std::int64_t out_features, bool bias) {
  LinearParameters<T> drawn = linear_init<T>(default_generator(), in_features, out_features, bias);
  weight_ = this->make_parameter("weight", std::move(drawn.weight));
  if (bias) bias_ = this->make_parameter("bias", std::move(drawn.bias));
}

template <class T>
Variable<T> Linear<T>::forward(const Variable<T>& x) {
  return linear(x, weight_, bias_);
}

template <class T>
std::string Linear<T>::extra_repr() const {
  return fmt::format("in_features={}, out_features={}, bias={}", weight_.extent(1),
                     weight_.extent(0), bias_.is_defined() ? "True" : "False");
}

template <class T>
Embedding<T>::Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
                        std::optional<std::int64_t> padding_idx)
    : padding_idx_(padding_idx) {
  if (padding_idx_ && (*padding_idx_ < -num_embeddings || *padding_idx_ >= num_embeddings)) {
    throw InvalidArgument(fmt::format("Embedding: padding_idx is {} but num_embeddings {}",
                                      *padding_idx_, num_embeddings));
  }
  Tensor<T> table = embedding_weight<T>(default_generator(), num_embeddings, embedding_dim);
  if (padding_idx_) {
    if (*padding_idx_ < 0) *padding_idx_ += num_embeddings;
    std::fill_n(table.data() + *padding_idx_ * embedding_dim, embedding_dim, T{0});
  }
  weight_ = this->make_parameter("weight", std::move(table));
}

template <class T>
Variable<T> Embedding<T>::forward(TensorView<const std::int64_t> ids) {
  return embedding(ids, weight_, padding_idx_);
}

template <class T>
std::string Embedding<T>::extra_repr() const {
  const std::string sizes = fmt::format("{}, {}", weight_.extent(0), weight_.extent(1));
  return padding_idx_ ? fmt::format("{}, padding_idx={}", sizes, *padding_idx_) : sizes;
}

template <class T>
LayerNorm<T>::LayerNorm(const Shape& normalized_shape, double eps)
    : weight_(this->make_parameter("weight", filled(normalized_shape, T{1}))),
      bias_(this->make_parameter("bias", Tensor<T>(normalized_shape))),
      eps_(eps) {}

template <class T>
Variable<T> LayerNorm<T>::forward(const Variable<T>& x) {
  return layer_norm(x, weight_, bias_, eps_);
}

template <class T>
std::string LayerNorm<T>::extra_repr() const {
  return fmt::format("{}, eps={}, elementwise_affine=True, bias=True",
                     python_tuple(weight_.shape()), python_repr(eps_));
}

heed::Dropout draw_dropout(double probability) {
  if (probability == 0) return {};
  const auto seed = default_generator().randint(0, std::numeric_limits<std::int64_t>::max(), {1});
  return {static_cast<float>(probability), static_cast<std::uint64_t>(seed(0))};
}

template <class T>
Dropout<T>::Dropout(double p) : p_(p) {
  if (!(p >= 0 && p <= 1)) {
    throw InvalidArgument(fmt::format("Dropout: p is {}, expected 0 to 1", p));
  }
}

template <class T>
heed::Dropout Dropout<T>::draw() const {
  return this->is_training() ? draw_dropout(p_) : heed::Dropout{};
}

template <class T>
Variable<T> Dropout<T>::forward(const Variable<T>& x) {
  return dropout(x, draw());
}

template <class T>
std::string Dropout<T>::extra_repr() const {
  return fmt::format("p={}, inplace=False", python_repr(p_));
}

template <class T>
Variable<T> Sequential<T>::forward(const Variable<T>& x) {
  Variable<T> result = x;
  for (Layer<T>* layer : layers_) result = layer->forward(result);
  return result;
}

template class Linear<float>;
template class Linear<double>;
template class Embedding<float>;
template class Embedding<double>;
template class LayerNorm<float>;
template class LayerNorm<double>;
template class Dropout<float>;
template class Dropout<double>;
template class ReLU<float>;
template class ReLU<double>;
template class Tanh<float>;
template class Tanh<double>;
template class Sequential<float>;
template class Sequential<double>;

}}}  // namespace heed::v0::nn
