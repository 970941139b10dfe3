/// Conversion of a tensor's elements to another type.
#pragma once

#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The elements converted by static_cast, contiguous and in the shape of the view:
/// `converted<float>(weights.view())` for doubles, half floats or booleans.
template <class To, class T>
Tensor<To> converted(const TensorView<T>& view) {
  auto result = Tensor<To>::uninitialized(view.shape());
  To* out = result.data();
  for_each_element(view, [&out](const auto& element) { *out++ = static_cast<To>(element); });
  return result;
}

}}  // namespace heed::v0
