// Products with weights and embedding lookup, on plain tensors and with gradients.
#include "nn/ops/on_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/float_environment.h"
#include "heed/nn/ops.h"
#include "heed/nn/tape.h"
#include "nn/blas.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"
#include "nn/product.h"

namespace heed { inline namespace v0 { namespace nn {

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

// Merges all dimensions but the last.
template <class T>
TensorView<T> rows(TensorView<T> x) {
  const std::int64_t width = x.extent(-1);
  return x.reshape({width == 0 ? 0 : x.num_elements() / width, width});
}

// Adds a · b to the gradient of an input of shape `shape`.
template <class T>
void give_product(Step<T>& step, std::size_t input, const Shape& shape, TensorView<const T> a,
                  TensorView<const T> b) {
  if (!step.wants(input) || shape.num_elements() == 0) return;
  if (step.has_sum(input)) {
    matmul(a, b, rows(step.sum_for(input)), {.alpha = 1, .beta = 1});
    return;
  }
  auto grad = uninitialized<T>(shape);
  matmul(a, b, rows(grad.view()));
  step.give(input, std::move(grad));
}

}  // namespace

template <class T>
Tensor<T> linear_forward(TensorView<const T> x, TensorView<const T> weight,
                         TensorView<const T> bias) {
  check_linear(x.shape(), weight.shape(), bias.shape());
  const std::int64_t width = weight.extent(0);
  // Without inputs the product is 0.
  Tensor<T> y = x.empty() ? Tensor<T>(with_last(x.shape(), width))
                          : uninitialized<T>(with_last(x.shape(), width));
  const bool has_bias = !bias.empty();
  if (has_bias) {
    for_each_row(y.shape(), [&](std::int64_t row) {
      std::copy_n(bias.data(), width, y.data() + row * width);
    });
  }
  if (x.empty() || y.empty()) return y;
  product(rows(x), weight.permute({1, 0}), rows(y.view()), has_bias);
  return y;
}

template <class T>
Variable<T> linear(const Variable<T>& x, const Variable<T>& weight, const Variable<T>& bias) {
  const FloatEnvironment environment;
  const auto bias_value = bias.is_defined() ? bias.value() : TensorView<const T>();
  return record<T>(
      "linear", linear_forward(x.value(), weight.value(), bias_value), {x, weight, bias},
      [x = Saved(x), weight = Saved(weight)](Step<T>& step) {
        // The pass continues on a rank without tokens, because other ranks may have some.
        if (step.grad().empty()) return step.give(0, zeros<T>(x.shape()));
        const TensorView<const T> grad = rows(step.grad());
        give_product(step, 0, x.shape(), grad, weight.view());
        if (x.shape().num_elements() != 0) {
          give_product<T>(step, 1, weight.shape(), grad.permute({1, 0}), rows(x.view()));
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

namespace {

void check_ids(TensorView<const std::int64_t> ids, const Shape& table) {
  if (table.rank() != 2) {
    throw InvalidArgument(
        fmt::format("embedding: table has shape {}, expected [num_embeddings, embedding_dim]",
                    to_string(table)));
  }
  for_each_element(ids, [&](std::int64_t id) {
    if (id < 0 || id >= table[0]) {
      throw InvalidArgument(
          fmt::format("embedding: token id {} is not in the table of {}", id, table[0]));
    }
  });
}

}  // namespace

template <class T>
Tensor<T> gather_rows(TensorView<const std::int64_t> ids, TensorView<const T> table) {
  check_ids(ids, table.shape());
  std::vector<std::int64_t> extents = extents_of(ids.shape());
  extents.push_back(table.extent(1));
  auto result = Tensor<T>::uninitialized(Shape(extents));
  T* out = result.data();
  for_each_element(ids, [&](std::int64_t id) {
    copy_into(TensorView<T>(out, Shape{table.extent(1)}), table.select(0, id));
    out += table.extent(1);
  });
  return result;
}

template <class T>
Variable<T> embedding(TensorView<const std::int64_t> ids, const Variable<T>& table,
                      std::optional<std::int64_t> padding_idx) {
  const Value<std::int64_t> saved_ids(to_tensor(ids));
  return record<T>("embedding", gather_rows(saved_ids.view(), table.value()), {table},
                   [ids = saved_ids, padding_idx](Step<T>& step) {
                     const TensorView<T> sum = step.sum_for(0);
                     const std::int64_t width = sum.extent(1);
                     const T* grad = step.grad().data();
                     for (const std::int64_t id : ids.view().elements()) {
                       T* row = sum.data() + id * width;
                       if (id != padding_idx) {
                         std::transform(row, row + width, grad, row, std::plus<>());
                       }
                       grad += width;
                     }
                   });
}

template Tensor<float> gather_rows(TensorView<const std::int64_t>, FloatView);
template Tensor<double> gather_rows(TensorView<const std::int64_t>, DoubleView);
template HEED_API Variable<float> embedding(TensorView<const std::int64_t>, const Variable<float>&,
                                            std::optional<std::int64_t>);
template HEED_API Variable<double> embedding(TensorView<const std::int64_t>,
                                             const Variable<double>&, std::optional<std::int64_t>);

}}}  // namespace heed::v0::nn
