#include <fmt/format.h>

#include <algorithm>

#include "core/float_environment.h"
#include "heed/nn/ops.h"
#include "nn/blas.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"
#include "nn/product.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

Shape leading(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<std::size_t>(shape.rank() - 2)));
}

Shape with_matrix(const Shape& batch, std::int64_t rows, std::int64_t columns) {
  std::vector<std::int64_t> extents = extents_of(batch);
  extents.insert(extents.end(), {rows, columns});
  return Shape(extents);
}

// Returns the shape of the product; throws if the shapes do not fit.
Shape product_shape(const Shape& a, const Shape& b) {
  if (a.rank() < 2 || b.rank() < 2 || a[-1] != b[-2]) {
    throw InvalidArgument(
        fmt::format("matmul: a has shape {} and b {}, expected [..., m, k] and [..., k, n]",
                    to_string(a), to_string(b)));
  }
  return with_matrix(broadcast_shapes("matmul", leading(a), leading(b)), a[-2], b[-1]);
}

template <class T>
TensorView<T> transposed(TensorView<T> x) {
  Strides strides = x.strides();
  const auto last = static_cast<std::size_t>(x.rank() - 1);
  std::swap(strides[last], strides[last - 1]);
  return {x.data(), with_matrix(leading(x.shape()), x.extent(-1), x.extent(-2)), strides};
}

// The matrix of batch entry `index`, counted row-major over the leading dimensions.
template <class T>
TensorView<T> matrix_at(TensorView<T> x, std::int64_t index) {
  return {entry_at(x, index, 2), Shape{x.extent(-2), x.extent(-1)},
          Strides{x.stride(-2), x.stride(-1)}};
}

// One product of an entry of a batch: product() in the forward pass, BLAS in the backward pass.
template <class T>
using Product = void (*)(TensorView<const T> a, TensorView<const T> b, TensorView<T> out);

template <class T>
void forward_product(TensorView<const T> a, TensorView<const T> b, TensorView<T> out) {
  product(a, b, out);
}

template <class T>
void backward_product(TensorView<const T> a, TensorView<const T> b, TensorView<T> out) {
  heed::matmul(a, b, out);
}

// a · b for each entry of `batch`, to which both broadcast.
template <class T>
Tensor<T> multiply(TensorView<const T> a, TensorView<const T> b, const Shape& batch,
                   Product<T> multiply_entry) {
  const Shape shape = with_matrix(batch, a.extent(-2), b.extent(-1));
  if (shape.num_elements() == 0 || a.extent(-1) == 0) return Tensor<T>(shape);
  auto result = Tensor<T>::uninitialized(shape);
  const auto left = a.broadcast_to(with_matrix(batch, a.extent(-2), a.extent(-1)));
  const auto right = b.broadcast_to(with_matrix(batch, b.extent(-2), b.extent(-1)));
  const std::int64_t work = a.extent(-2) * a.extent(-1) * b.extent(-1);
  parallel_for(0, batch.num_elements(), row_grain(work),
               [&](std::int64_t first, std::int64_t last) {
                 for (std::int64_t i = first; i < last; ++i) {
                   multiply_entry(matrix_at<const T>(left, i), matrix_at<const T>(right, i),
                                  matrix_at<T>(result.view(), i));
                 }
               });
  return result;
}

}  // namespace

template <class T>
Variable<T> matmul(const Variable<T>& a, const Variable<T>& b) {
  const FloatEnvironment environment;
  const Shape batch = leading(product_shape(a.shape(), b.shape()));
  return record<T>(
      "matmul", multiply(a.value(), b.value(), batch, forward_product<T>), {a, b},
      [a = Saved(a), b = Saved(b), batch](Step<T>& step) {
        if (step.wants(0)) {
          const auto grad = multiply(step.grad(), transposed(b.view()), batch, backward_product<T>);
          step.give(0, reduce_to(grad.view(), a.shape()));
        }
        if (step.wants(1)) {
          const auto grad = multiply(transposed(a.view()), step.grad(), batch, backward_product<T>);
          step.give(1, reduce_to(grad.view(), b.shape()));
        }
      });
}

template HEED_API Variable<float> matmul(const Variable<float>&, const Variable<float>&);
template HEED_API Variable<double> matmul(const Variable<double>&, const Variable<double>&);

}}}  // namespace heed::v0::nn
