/// PyTorch's default initialisation, drawn in PyTorch's order: the same seed gives the same
/// weights.
#pragma once

#include <cstdint>

#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The parameters of y = x · weightᵀ + bias.
template <class T>
struct LinearParameters {
  Tensor<T> weight;  ///< [out_features, in_features]
  Tensor<T> bias;    ///< [out_features], or [0] when the layer has none
};

/// The weight of torch.nn.Embedding, [num_embeddings, embedding_dim]: normal with mean 0 and
/// standard deviation 1. T is float or double.
/// @throws InvalidArgument when a size is negative.
template <class T = float>
HEED_API Tensor<T> embedding_weight(TorchGenerator& generator, std::int64_t num_embeddings,
                                    std::int64_t embedding_dim);

/// The parameters of torch.nn.Linear: the weight is drawn by kaiming_uniform_ with a = √5 (He et
/// al., 2015), then the bias; both are uniform in ±1/√in_features. T is float or double.
/// @throws InvalidArgument when a size is negative.
template <class T = float>
HEED_API LinearParameters<T> linear_init(TorchGenerator& generator, std::int64_t in_features,
                                         std::int64_t out_features, bool bias = true);

}}  // namespace heed::v0
