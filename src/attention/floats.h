// Tensors as the floats they stand for, where plain loops compute what kernels would.
#pragma once

#include "heed/tensor.h"

namespace heed::inline v0 {

template <class T>
Tensor<float> to_floats(TensorView<const T> view) {
  auto result = Tensor<float>::uninitialized(view.shape());
  float* out = result.data();
  for_each_element(view, [&out](T element) { *out++ = static_cast<float>(element); });
  return result;
}

}  // namespace heed::inline v0
