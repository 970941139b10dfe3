// Tensors whose rows consist of heads side by side.
#pragma once

#include <fmt/format.h>

#include <cstdint>

#include "heed/core/error.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// x [batch, length, num_heads · head_dim] as a view [batch, num_heads, length, head_dim] of the
// same elements. num_heads must divide the width.
template <class T>
TensorView<T> heads_side_by_side(const TensorView<T>& x, std::int64_t num_heads) {
  const std::int64_t head_dim = x.extent(2) / num_heads;
  return {x.data(), Shape{x.extent(0), num_heads, x.extent(1), head_dim},
          Strides{x.stride(0), head_dim * x.stride(2), x.stride(1), x.stride(2)}};
}

// As above for any num_heads. Throws InvalidArgument that names `function` unless it divides the
// width.
template <class T>
TensorView<T> split_width(const char* function, const TensorView<T>& x, std::int64_t num_heads) {
  if (num_heads < 1 || x.extent(2) % num_heads != 0) {
    throw InvalidArgument(fmt::format("{}: width {} is not a multiple of num_heads, {}", function,
                                      x.extent(2), num_heads));
  }
  return heads_side_by_side(x, num_heads);
}

}}  // namespace heed::v0
