// y = x · weightᵀ + bias on plain tensors.
#pragma once

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

// x [..., in_features] contiguous, weight [out_features, in_features], bias [out_features] or
// empty.
// @throws InvalidArgument when the shapes do not fit.
template <class T>
Tensor<T> linear_forward(TensorView<const T> x, TensorView<const T> weight,
                         TensorView<const T> bias);

}}}  // namespace heed::v0::nn
