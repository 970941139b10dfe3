// Tensors as the floats they stand for, where plain loops compute what kernels would.
#pragma once

#include "heed/tensor.h"

namespace heed::inline v0 {

// Of a view that repeats one batch entry, that entry alone.
template <class T>
Tensor<float> to_floats(TensorView<const T> view) {
  if (view.stride(0) == 0 && view.extent(0) > 1) view = view.slice(0, 0, 1);
  auto result = Tensor<float>::uninitialized(view.shape());
  float* out = result.data();
  for_each_element(view, [&out](T element) { *out++ = static_cast<float>(element); });
  return result;
}

}  // namespace heed::inline v0
