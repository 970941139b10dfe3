/// The elements of a tensor as another type.
#pragma once

#include "heed/config.h"
#include "heed/tensor.h"

namespace heed::inline v0 {

/// Each element as static_cast has it, contiguous: `converted<float>(weights.view())` of doubles,
/// half floats, booleans.
template <class To, class T>
Tensor<To> converted(const TensorView<T>& view) {
  auto result = Tensor<To>::uninitialized(view.shape());
  To* out = result.data();
  for_each_element(view, [&out](const auto& element) { *out++ = static_cast<To>(element); });
  return result;
}

}  // namespace heed::inline v0
