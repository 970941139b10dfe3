// Combines shapes as PyTorch does.
#pragma once

#include <string>
#include <vector>

#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace nn {

// The shape to which both broadcast, aligned at the right.
// @throws InvalidArgument naming `function` and both shapes if there is none.
Shape broadcast_shapes(const char* function, const Shape& a, const Shape& b);

// The number of a dimension from the front; a negative `dim` counts from the end.
// @throws InvalidArgument naming `function` if there is no such dimension.
int checked_dim(const char* function, const Shape& shape, int dim);

inline std::vector<std::int64_t> extents_of(const Shape& shape) {
  return {shape.begin(), shape.end()};
}

// `shape` with another last extent; its rank must not be 0.
Shape with_last(const Shape& shape, std::int64_t extent);

// The address of entry `index`, counted row-major over all but the last `inner` dimensions.
template <class T>
T* entry_at(TensorView<T> x, std::int64_t index, int inner) {
  std::int64_t offset = 0;
  for (int dim = x.rank() - inner - 1; dim >= 0; --dim) {
    offset += index % x.extent(dim) * x.stride(dim);
    index /= x.extent(dim);
  }
  return x.data() + offset;
}

// Σ over the dimensions that broadcasting from `shape` to grad's shape had repeated.
template <class T>
Tensor<T> reduce_to(TensorView<const T> grad, const Shape& shape);

// A contiguous copy; rows with adjacent elements are copied as a whole.
template <class T>
Tensor<T> contiguous(TensorView<const T> view);

// to = from for views of one shape; `to` repeats no element.
template <class T>
void copy_into(TensorView<T> to, TensorView<const T> from);

// to += from for views of one shape, element by element; `to` repeats no element.
template <class T>
void add_into(TensorView<T> to, TensorView<const T> from);

}}}  // namespace heed::v0::nn
