// Loops over the elements of contiguous views, divided among threads if they are long enough.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/huge_pages.h"
#include "heed/core/parallel.h"
#include "heed/nn/tape.h"

namespace heed { inline namespace v0 { namespace nn {

// Elements per chunk of a loop with little arithmetic: a chunk takes some 10 µs.
inline constexpr std::int64_t kElementGrain = 16384;

// As Tensor::uninitialized(), with large pages for large tensors: a training step allocates and
// frees hundreds of megabytes.
template <class T>
Tensor<T> uninitialized(const Shape& shape) {
  auto result = Tensor<T>::uninitialized(shape);
  prefer_huge_pages(result.data(), static_cast<std::size_t>(shape.num_elements()) * sizeof(T));
  return result;
}

// Zeros, written by all threads: with the first write the system allocates the pages of large
// tensors.
template <class T>
Tensor<T> zeros(const Shape& shape) {
  auto result = uninitialized<T>(shape);
  T* out = result.data();
  parallel_for(0, result.num_elements(), kElementGrain, [=](std::int64_t first, std::int64_t last) {
    std::fill(out + first, out + last, T{0});
  });
  return result;
}

// f(x) for every element.
template <class T, class F>
Tensor<T> map(TensorView<const T> x, F f) {
  auto result = uninitialized<T>(x.shape());
  const T* in = x.data();
  T* out = result.data();
  parallel_for(0, x.num_elements(), kElementGrain, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) out[i] = f(in[i]);
  });
  return result;
}

// f(x, y) for every pair of elements; the shapes are equal.
template <class T, class F>
Tensor<T> map(TensorView<const T> x, TensorView<const T> y, F f) {
  auto result = uninitialized<T>(x.shape());
  const T* left = x.data();
  const T* right = y.data();
  T* out = result.data();
  parallel_for(0, x.num_elements(), kElementGrain, [=](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) out[i] = f(left[i], right[i]);
  });
  return result;
}

// The number of rows of `width` elements in a chunk.
inline std::int64_t row_grain(std::int64_t width) {
  return width >= kElementGrain ? 1 : kElementGrain / (width + 1) + 1;
}

// Calls body(row) for each row of a tensor (its last dimension), on many threads.
template <class F>
void for_each_row(const Shape& shape, F body) {
  if (shape.num_elements() == 0) return;
  const std::int64_t width = shape[-1];
  parallel_for(0, shape.num_elements() / width, row_grain(width),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t row = first; row < last; ++row) body(row);
               });
}

}}}  // namespace heed::v0::nn
