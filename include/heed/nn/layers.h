/// The basic layers, with PyTorch's parameters, defaults and initialisation. Constructors draw from
/// default_generator().
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/nn/module.h"
#include "heed/nn/ops.h"

namespace heed { inline namespace v0 { namespace nn {

/// x · weightᵀ + bias: torch.nn.Linear. weight [out_features, in_features], bias [out_features].
template <class T = float>
class HEED_API Linear : public Layer<T> {
 public:
  /// @throws InvalidArgument when a size is negative.
  Linear(std::int64_t in_features, std::int64_t out_features, bool bias = true);

  Variable<T> forward(const Variable<T>& x) override;
  const Variable<T>& weight() const noexcept { return weight_; }
  const Variable<T>& bias() const noexcept { return bias_; }  ///< not defined without one

  std::string class_name() const override { return "Linear"; }
  std::string extra_repr() const override;

 private:
  Variable<T> weight_;
  Variable<T> bias_;
};

/// A lookup table: torch.nn.Embedding. weight [num_embeddings, embedding_dim], normal with mean 0
/// and standard deviation 1; the row padding_idx is 0 and receives no gradient.
template <class T = float>
class HEED_API Embedding : public Module<T> {
 public:
  /// @param padding_idx counts from the end when negative
  /// @throws InvalidArgument when a size is negative or padding_idx is not a row.
  Embedding(std::int64_t num_embeddings, std::int64_t embedding_dim,
            std::optional<std::int64_t> padding_idx = std::nullopt);

  /// From ids [...] to rows [..., embedding_dim]. @throws InvalidArgument when an id is not a row.
  Variable<T> forward(TensorView<const std::int64_t> ids);
  const Variable<T>& weight() const noexcept { return weight_; }

  std::string class_name() const override { return "Embedding"; }
  std::string extra_repr() const override;

 private:
  Variable<T> weight_;
  std::optional<std::int64_t> padding_idx_;
};

/// Normalises over the last dimensions: torch.nn.LayerNorm. weight is initially 1 and bias 0, both
/// of `normalized_shape`.
template <class T = float>
class HEED_API LayerNorm : public Layer<T> {
 public:
  explicit LayerNorm(const Shape& normalized_shape, double eps = 1e-5);
  explicit LayerNorm(std::int64_t width, double eps = 1e-5) : LayerNorm(Shape{width}, eps) {}

  Variable<T> forward(const Variable<T>& x) override;
  const Variable<T>& weight() const noexcept { return weight_; }
  const Variable<T>& bias() const noexcept { return bias_; }

  std::string class_name() const override { return "LayerNorm"; }
  std::string extra_repr() const override;

 private:
  Variable<T> weight_;
  Variable<T> bias_;
  double eps_;
};

/// A dropout for one call, whose seed is drawn from default_generator(), so that set_seed
/// reproduces it. Nothing is drawn for a probability of 0, as in PyTorch.
HEED_API heed::Dropout draw_dropout(double probability);

/// In training, sets elements to 0 with probability p and divides the others by 1 − p:
/// torch.nn.Dropout. draw_dropout() selects the elements, not PyTorch's stream.
template <class T = float>
class HEED_API Dropout : public Layer<T> {
 public:
  /// @throws InvalidArgument unless 0 ≤ p ≤ 1.
  explicit Dropout(double p = 0.5);

  Variable<T> forward(const Variable<T>& x) override;
  /// The dropout of one call; of probability 0 in evaluation.
  heed::Dropout draw() const;
  double p() const noexcept { return p_; }

  std::string class_name() const override { return "Dropout"; }
  std::string extra_repr() const override;

 private:
  double p_;
};

/// max(x, 0): torch.nn.ReLU.
template <class T = float>
class HEED_API ReLU : public Layer<T> {
 public:
  Variable<T> forward(const Variable<T>& x) override { return relu(x); }
  std::string class_name() const override { return "ReLU"; }
};

/// tanh x: torch.nn.Tanh.
template <class T = float>
class HEED_API Tanh : public Layer<T> {
 public:
  Variable<T> forward(const Variable<T>& x) override { return tanh(x); }
  std::string class_name() const override { return "Tanh"; }
};

/// Layers that are applied one after the other, named "0", "1", …: torch.nn.Sequential.
template <class T = float>
class HEED_API Sequential : public Layer<T> {
 public:
  /// Constructs a layer and appends it.
  template <class L, class... Arguments>
  L& append(Arguments&&... arguments) {
    L& layer = this->template make_module<L>(std::to_string(this->num_parts()),
                                             std::forward<Arguments>(arguments)...);
    layers_.push_back(&layer);
    return layer;
  }

  Variable<T> forward(const Variable<T>& x) override;
  std::string class_name() const override { return "Sequential"; }

 private:
  std::vector<Layer<T>*> layers_;
};

extern template class Linear<float>;
extern template class Linear<double>;
extern template class Embedding<float>;
extern template class Embedding<double>;
extern template class LayerNorm<float>;
extern template class LayerNorm<double>;
extern template class Dropout<float>;
extern template class Dropout<double>;
extern template class ReLU<float>;
extern template class ReLU<double>;
extern template class Tanh<float>;
extern template class Tanh<double>;
extern template class Sequential<float>;
extern template class Sequential<double>;

}}}  // namespace heed::v0::nn
