/// The elements of a tensor as another type.
#pragma once

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// Each element as static_cast has it, contiguous: `converted<float>(weights.view())` of doubles,
/// half floats, booleans.
template <class To, class T>
Tensor<To> converted(const TensorView<T>& view) {
  auto result = Tensor<To>::uninitialized(view.shape());
  To* out = result.data();
  for_each_element(view, [&out](const auto& element) { *out++ = static_cast<To>(element); });
  return result;
}

}}  // namespace heed::v0
