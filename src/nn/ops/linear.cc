#include "nn/ops/linear.h"

#include <fmt/format.h>

#include "core/blas.h"
#include "heed/nn/ops.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"

namespace heed::inline v0::nn {

namespace {

void check_linear(const Shape& x, const Shape& weight, const Shape& bias) {
  if (weight.rank() != 2) {
    throw InvalidArgument(fmt::format(
        "linear: weight has shape {}, expected [out_features, in_features]", to_string(weight)));
  }
  if (x.rank() == 0 || x[-1] != weight[1]) {
    throw InvalidArgument(
        fmt::format("linear: x has shape {} but weight {}: their last extents differ", to_string(x),
                    to_string(weight)));
  }
  if (bias.num_elements() != 0 && bias != Shape{weight[0]}) {
    throw InvalidArgument(
        fmt::format("linear: bias has shape {}, expected [{}]", to_string(bias), weight[0]));
  }
}

// All but the last dimension as one.
template <class T>
TensorView<T> rows(TensorView<T> x) {
  const std::int64_t width = x.extent(-1);
  return x.reshape({width == 0 ? 0 : x.num_elements() / width, width});
}

}  // namespace

template <class T>
Tensor<T> linear_forward(TensorView<const T> x, TensorView<const T> weight,
                         TensorView<const T> bias) {
  check_linear(x.shape(), weight.shape(), bias.shape());
  Tensor<T> y(with_last(x.shape(), weight.extent(0)));
  if (y.empty()) return y;
  const bool has_bias = !bias.empty();
  T* out = y.data();
  const std::int64_t width = weight.extent(0);
  if (has_bias) {
    for_each_row(y.shape(),
                 [&](std::int64_t row) { std::copy_n(bias.data(), width, out + row * width); });
  }
  if (x.empty()) return y;
  matmul(rows(x), weight.permute({1, 0}), rows(y.view()),
         {.alpha = 1, .beta = has_bias ? T{1} : T{0}});
  return y;
}

template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  const auto bias_value = bias.is_defined() ? bias.value() : TensorView<const T>();
  return record<T>(
      "linear", linear_forward(x.value(), weight.value(), bias_value), {x, weight, bias},
      [x = Saved(x), weight = Saved(weight)](Step<T>& step) {
        if (step.grad().empty()) return;
        const TensorView<const T> grad = rows(step.grad());
        if (step.wants(0) && x.shape().num_elements() != 0) {
          matmul(grad, weight.view(), rows(step.sum_for(0)), {.alpha = 1, .beta = 1});
        }
        if (step.wants(1) && x.shape().num_elements() != 0) {
          matmul(grad.permute({1, 0}), rows(x.view()), step.sum_for(1), {.alpha = 1, .beta = 1});
        }
        if (step.wants(2)) step.give(2, reduce_to(grad, Shape{grad.extent(1)}));
      });
}

template Tensor<float> linear_forward(FloatView, FloatView, FloatView);
template Tensor<double> linear_forward(DoubleView, DoubleView, DoubleView);
template HEED_API Variable<float> linear(const Variable<float>&, const Variable<float>&,
                                         const Variable<float>&);
template HEED_API Variable<double> linear(const Variable<double>&, const Variable<double>&,
                                          const Variable<double>&);

}  // namespace heed::inline v0::nn
