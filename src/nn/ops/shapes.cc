#include "nn/ops/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace heed::inline v0::nn {

namespace {

// Calls body(x, y, n, x_step, y_step) for the innermost rows of two views of one shape, in order.
template <class X, class Y, class F>
void for_each_row_pair(TensorView<X> x, TensorView<Y> y, const F& body) {
  if (x.empty()) return;
  if (x.rank() == 0) {
    body(x.data(), y.data(), 1, 0, 0);
  } else if (x.rank() == 1) {
    body(x.data(), y.data(), x.extent(0), x.stride(0), y.stride(0));
  } else {
    for (std::int64_t i = 0; i < x.extent(0); ++i) {
      for_each_row_pair(x.select(0, i), y.select(0, i), body);
    }
  }
}

}  // namespace

Shape broadcast_shapes(const char* function, const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  std::vector<std::int64_t> extents(static_cast<std::size_t>(rank), 1);
  for (int dim = 1; dim <= rank; ++dim) {
    const std::int64_t left = dim <= a.rank() ? a[-dim] : 1;
    const std::int64_t right = dim <= b.rank() ? b[-dim] : 1;
    if (left != right && left != 1 && right != 1) {
      throw InvalidArgument(fmt::format("{}: the shapes {} and {} do not broadcast", function,
                                        to_string(a), to_string(b)));
    }
    extents[static_cast<std::size_t>(rank - dim)] = left == 1 ? right : left;
  }
  return Shape(extents);
}

int checked_dim(const char* function, const Shape& shape, int dim) {
  if (dim < -shape.rank() || dim >= shape.rank()) {
    throw InvalidArgument(fmt::format("{}: dim is {} but the shape is {}, of rank {}", function,
                                      dim, to_string(shape), shape.rank()));
  }
  return dim < 0 ? dim + shape.rank() : dim;
}

Shape with_last(const Shape& shape, std::int64_t extent) {
  std::vector<std::int64_t> extents = extents_of(shape);
  extents.back() = extent;
  return Shape(extents);
}

template <class T>
Tensor<T> reduce_to(TensorView<const T> grad, const Shape& shape) {
  if (grad.shape() == shape) return contiguous(grad);
  Tensor<double> sums(shape);
  for_each_row_pair(
      sums.view().broadcast_to(grad.shape()), grad,
      [](double* sum, const T* x, std::int64_t n, std::int64_t sum_step, std::int64_t x_step) {
        for (std::int64_t i = 0; i < n; ++i) sum[i * sum_step] += x[i * x_step];
      });
  auto result = Tensor<T>::uninitialized(shape);
  std::transform(sums.elements().begin(), sums.elements().end(), result.data(),
                 [](double sum) { return static_cast<T>(sum); });
  return result;
}

template <class T>
Tensor<T> contiguous(TensorView<const T> view) {
  auto result = Tensor<T>::uninitialized(view.shape());
  for_each_row_pair(result.view(), view,
                    [](T* to, const T* from, std::int64_t n, std::int64_t, std::int64_t step) {
                      if (step == 1) {
                        std::copy_n(from, n, to);
                      } else {
                        for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * step];
                      }
                    });
  return result;
}

template <class T>
void add_into(TensorView<T> to, TensorView<const T> from) {
  for_each_row_pair(
      to, from, [](T* sum, const T* x, std::int64_t n, std::int64_t sum_step, std::int64_t x_step) {
        for (std::int64_t i = 0; i < n; ++i) sum[i * sum_step] += x[i * x_step];
      });
}

template Tensor<float> reduce_to(FloatView, const Shape&);
template Tensor<double> reduce_to(DoubleView, const Shape&);
template Tensor<float> contiguous(FloatView);
template Tensor<double> contiguous(DoubleView);
template void add_into(TensorView<float>, FloatView);
template void add_into(TensorView<double>, DoubleView);

}  // namespace heed::inline v0::nn
