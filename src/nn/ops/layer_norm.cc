#include <fmt/format.h>

#include <cmath>

#include "core/float_environment.h"
#include "heed/nn/ops.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

// The values of a row that forward and backward pass share.
struct RowMoments {
  double mean = 0;
  double inverse_std = 0;
};

// Views x as [rows, width]; the width is the number of elements of weight.
template <class T>
TensorView<const T> as_rows(TensorView<const T> x, std::int64_t width) {
  return x.reshape({width == 0 ? 0 : x.num_elements() / width, width});
}

void check_layer_norm(const Shape& x, const Shape& weight, const Shape& bias) {
  const int rank = weight.rank();
  bool fits = rank >= 1 && rank <= x.rank() && weight == bias;
  for (int dim = 1; fits && dim <= rank; ++dim) fits = x[-dim] == weight[-dim];
  if (!fits) {
    throw InvalidArgument(fmt::format(
        "layer_norm: x has shape {}, weight {} and bias {}; expected weight and bias to have the "
        "shape of x's last dimensions",
        to_string(x), to_string(weight), to_string(bias)));
  }
}

template <class T>
RowMoments moments(const T* x, std::int64_t width, double eps) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(width);
  double squares = 0;
  for (std::int64_t i = 0; i < width; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(width) + eps)};
}

// With n = (x − mean) · inverse_std and d = grad · weight:
//   grad_x = inverse_std · (d − mean(d) − n · mean(d · n))
template <class T>
void row_backward(const RowMoments& row, std::int64_t width, const T* x, const T* grad_weighted,
                  T* grad_x) {
  double sum = 0;
  double sum_normalized = 0;
  for (std::int64_t i = 0; i < width; ++i) {
    sum += grad_weighted[i];
    sum_normalized += grad_weighted[i] * (x[i] - row.mean) * row.inverse_std;
  }
  const double mean = sum / static_cast<double>(width);
  const double mean_normalized = sum_normalized / static_cast<double>(width);
  for (std::int64_t i = 0; i < width; ++i) {
    const double normalized = (x[i] - row.mean) * row.inverse_std;
    grad_x[i] =
        static_cast<T>(row.inverse_std * (grad_weighted[i] - mean - normalized * mean_normalized));
  }
}

template <class T>
Tensor<T> normalized(TensorView<const T> x, const std::vector<RowMoments>& rows) {
  auto result = Tensor<T>::uninitialized(x.shape());
  for_each_row(x.shape(), [&](std::int64_t row) {
    const RowMoments& of_row = rows[static_cast<std::size_t>(row)];
    for (std::int64_t i = row * x.extent(1); i < (row + 1) * x.extent(1); ++i) {
      result.data()[i] = static_cast<T>((x.data()[i] - of_row.mean) * of_row.inverse_std);
    }
  });
  return result;
}

template <class T>
T* grad_row(Tensor<T>& tensor, std::int64_t row) {
  return tensor.data() + row * tensor.extent(1);
}

template <class T>
Tensor<T> backward_to_x(TensorView<const T> grad, TensorView<const T> x, TensorView<const T> weight,
                        const std::vector<RowMoments>& rows) {
  const std::int64_t width = x.extent(1);
  Tensor<T> result(x.shape());
  for_each_row(x.shape(), [&](std::int64_t row) {
    T* out = grad_row(result, row);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = grad.data()[row * width + i] * weight.data()[i];
    }
    row_backward(rows[static_cast<std::size_t>(row)], width, x.data() + row * width, out, out);
  });
  return result;
}

}  // namespace

template <class T>
Variable<T> layer_norm(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias,
                       double eps) {
  const FloatEnvironment environment;
  check_layer_norm(x.shape(), weight.shape(), bias.shape());
  const std::int64_t width = weight.num_elements();
  const TensorView<const T> in = as_rows(x.value(), width);
  std::vector<RowMoments> rows(static_cast<std::size_t>(in.extent(0)));
  for_each_row(in.shape(), [&](std::int64_t row) {
    rows[static_cast<std::size_t>(row)] = moments(in.data() + row * width, width, eps);
  });
  Tensor<T> y = normalized(in, rows);
  for_each_row(in.shape(), [&](std::int64_t row) {
    T* out = grad_row(y, row);
    for (std::int64_t i = 0; i < width; ++i) {
      out[i] = out[i] * weight.value().data()[i] + bias.value().data()[i];
    }
  });
  return record<T>(
      "layer_norm", std::move(y).reshaped(x.shape()), {x, weight, bias},
      [x = Saved(x), weight = Saved(weight), rows = std::move(rows)](Step<T>& step) {
        const std::int64_t row_width = weight.shape().num_elements();
        const TensorView<const T> in_rows = as_rows(x.view(), row_width);
        const TensorView<const T> grad = as_rows(step.grad(), row_width);
        if (step.wants(0)) {
          step.give(0, backward_to_x(grad, in_rows, weight.view(), rows).reshaped(x.shape()));
        }
        if (step.wants(1)) {
          const Tensor<T> n = normalized(in_rows, rows);
          const Tensor<T> product = map(grad, n.view(), [](T g, T of_n) { return g * of_n; });
          step.give(1, reduce_to<T>(product, Shape{row_width}).reshaped(weight.shape()));
        }
        if (step.wants(2)) {
          step.give(2, reduce_to(grad, Shape{row_width}).reshaped(weight.shape()));
        }
      });
}

template HEED_API Variable<float> layer_norm(const Variable<float>&, const Variable<float>&,
                                             const Variable<float>&, double);
template HEED_API Variable<double> layer_norm(const Variable<double>&, const Variable<double>&,
                                              const Variable<double>&, double);

}}}  // namespace heed::v0::nn
