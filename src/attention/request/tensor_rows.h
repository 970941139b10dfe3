// Pointers to the rows of a tensor of rank 4, of any floating-point type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// The rows of a tensor [batch, heads, length, dim]; strides are in bytes.
template <class Byte>
struct BasicRows {
  Byte* data = nullptr;
  DataType type = DataType::kFloat32;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  Byte* row(std::int64_t batch, std::int64_t head, std::int64_t index) const {
    return data + batch * batch_stride + head * head_stride + index * row_stride;
  }
};

using Rows = BasicRows<const std::byte>;
using MutableRows = BasicRows<std::byte>;

template <class T>
auto rows_of(const TensorView<T>& view) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  return BasicRows<Byte>{reinterpret_cast<Byte*>(view.data()),
                         data_type_of<std::remove_const_t<T>>(), view.stride(0) * kSize,
                         view.stride(1) * kSize, view.stride(2) * kSize};
}

}}  // namespace heed::v0
