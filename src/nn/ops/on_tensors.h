// Layers on plain tensors: embedding lookup, and products with weights.
#pragma once

#include <cstdint>

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

// Returns the rows of `table` [num_embeddings, embedding_dim] selected by ids [...]: [...,
// embedding_dim].
// @throws InvalidArgument when the table is no matrix or an id is not one of its rows.
template <class T>
Tensor<T> gather_rows(TensorView<const std::int64_t> ids, TensorView<const T> table);

// x [..., in_features] contiguous, weight [out_features, in_features], bias [out_features] or
// empty.
// @throws InvalidArgument when the shapes do not fit.
template <class T>
Tensor<T> linear_forward(TensorView<const T> x, TensorView<const T> weight,
                         TensorView<const T> bias);

}}}  // namespace heed::v0::nn
