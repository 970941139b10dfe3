#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>

#include "core/float_environment.h"
#include "heed/attention/reference.h"
#include "heed/core/dual.h"
#include "heed/core/elementary.h"
#include "heed/nn/ops.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"
#include "nn/ops/vector_loops.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

void check_rows(const char* function, const Shape& shape) {
  if (shape.rank() == 0) {
    throw InvalidArgument(
        fmt::format("{}: x has shape {}, expected rank 1 or more", function, to_string(shape)));
  }
}

template <class T>
std::span<const T> row_of(TensorView<const T> x, std::int64_t row) {
  return {x.data() + row * x.extent(-1), static_cast<std::size_t>(x.extent(-1))};
}

// The maximum and the sum of exponentials of a row: softmax(x) = exp(x − largest) / sum.
template <class T>
struct RowExponentials {
  T largest = 0;
  double sum = 0;
};

// Writes exp(x − max x) to y.
template <class T>
RowExponentials<T> exponentials(std::span<const T> x, T* y) {
  const auto count = static_cast<std::int64_t>(x.size());
  const T largest = vector_loops<T>().largest(x.data(), count);
  return {largest, vector_loops<T>().exp_and_sum(x.data(), largest, count, y)};
}

// (x − max x) − log Σ exp(x − max x). This order matters: if log Σ exp(x) were 1000, it would carry
// an error of 3e-5 into every element.
template <class T>
T log_softmax_at(T x, const RowExponentials<T>& row) {
  return (x - row.largest) - static_cast<T>(elementary::log(row.sum));
}

template <class T>
void log_softmax_row(std::span<const T> x, T* y) {
  const RowExponentials<T> row = exponentials(x, y);
  const auto log_sum = static_cast<T>(elementary::log(row.sum));
  std::transform(x.begin(), x.end(), y,
                 [&](T element) { return (element - row.largest) - log_sum; });
}

template <class T>
Tensor<T> log_softmax_of(TensorView<const T> x) {
  auto y = Tensor<T>::uninitialized(x.shape());
  for_each_row(x.shape(), [&](std::int64_t row) {
    log_softmax_row(row_of<T>(x, row), y.data() + row * x.extent(-1));
  });
  return y;
}

// grad_x = grad − exp(y) · Σ grad
template <class T>
Tensor<T> log_softmax_backward(TensorView<const T> grad, TensorView<const T> y) {
  auto result = Tensor<T>::uninitialized(y.shape());
  for_each_row(y.shape(), [&](std::int64_t row) {
    const auto grads = row_of<T>(grad, row);
    double sum = 0;
    for (const T element : grads) sum += element;
    std::transform(grads.begin(), grads.end(), row_of<T>(y, row).begin(),
                   result.data() + row * y.extent(-1), [sum](T grad_y, T log_weight) {
                     return grad_y - heed::exp(log_weight) * static_cast<T>(sum);
                   });
  });
  return result;
}

template <class T>
struct Targets {
  std::vector<std::int64_t> classes;  // of each row; −1 if the row is ignored
  T count = 0;                        // the number of rows that are not ignored
};

template <class T>
Targets<T> checked_targets(const Shape& logits, TensorView<const std::int64_t> targets,
                           std::int64_t ignore_index) {
  check_rows("cross_entropy", logits);
  if (with_last(logits, 1).num_elements() != targets.num_elements() ||
      !std::equal(targets.shape().begin(), targets.shape().end(), logits.begin(),
                  logits.end() - 1)) {
    throw InvalidArgument(
        fmt::format("cross_entropy: targets have shape {} but logits {}; expected [...] and "
                    "[..., classes]",
                    to_string(targets.shape()), to_string(logits)));
  }
  Targets<T> result;
  for_each_element(targets, [&](std::int64_t target) {
    const bool is_ignored = target == ignore_index;
    if (!is_ignored && (target < 0 || target >= logits[-1])) {
      throw InvalidArgument(fmt::format(
          "cross_entropy: a target is {}, expected 0 ≤ target < {} classes", target, logits[-1]));
    }
    result.classes.push_back(is_ignored ? -1 : target);
    if (!is_ignored) ++result.count;
  });
  if (result.count == 0) {
    throw InvalidArgument("cross_entropy: no target counts, so there is no mean of their losses");
  }
  return result;
}

// The exponentials of each row of the logits, from which the gradient is computed; undefined for
// ignored rows.
template <class T>
struct Exponentials {
  Tensor<T> elements;
  std::vector<RowExponentials<T>> rows;
};

template <class T>
Exponentials<T> exponentials_of(TensorView<const T> logits, const Targets<T>& targets) {
  Exponentials<T> result{uninitialized<T>(logits.shape()), {}};
  result.rows.resize(targets.classes.size());
  for_each_row(logits.shape(), [&](std::int64_t row) {
    const auto index = static_cast<std::size_t>(row);
    if (targets.classes[index] < 0) return;
    result.rows[index] =
        exponentials(row_of<T>(logits, row), result.elements.data() + row * logits.extent(-1));
  });
  return result;
}

template <class T>
T mean_loss(TensorView<const T> logits, const Exponentials<T>& exponentials,
            const Targets<T>& targets) {
  double sum = 0;
  for (std::size_t row = 0; row < targets.classes.size(); ++row) {
    const std::int64_t target = targets.classes[row];
    if (target < 0) continue;
    const auto logit =
        row_of<T>(logits, static_cast<std::int64_t>(row))[static_cast<std::size_t>(target)];
    sum -= log_softmax_at(logit, exponentials.rows[row]);
  }
  return static_cast<T>(sum / targets.count);
}

// Turns the exponentials into (softmax(x) − [target]) · grad / count, in place.
template <class T>
void cross_entropy_backward(T grad, const Exponentials<T>& exponentials, const Targets<T>& targets,
                            Tensor<T>& result) {
  const T factor = grad / targets.count;
  const std::int64_t width = result.extent(-1);
  for_each_row(result.shape(), [&](std::int64_t row) {
    const auto index = static_cast<std::size_t>(row);
    T* const out = result.data() + row * width;
    if (targets.classes[index] < 0) {
      std::fill_n(out, width, T{0});
      return;
    }
    const auto of_row = static_cast<T>(factor / exponentials.rows[index].sum);
    std::transform(out, out + width, out, [of_row](T element) { return element * of_row; });
    out[targets.classes[index]] -= factor;
  });
}

}  // namespace

template <class T>
Variable<T> softmax(const Variable<T>& x) {
  const FloatEnvironment environment;
  const Value<T> y(reference::softmax(x.value()));
  return record<T>("softmax", y, {x}, [y = Saved(y)](Step<T>& step) {
    step.give(0, reference::softmax_backward(step.grad(), y.view()));
  });
}

template <class T>
Variable<T> log_softmax(const Variable<T>& x) {
  const FloatEnvironment environment;
  check_rows("log_softmax", x.shape());
  const Value<T> y(log_softmax_of(x.value()));
  return record<T>("log_softmax", y, {x}, [y = Saved(y)](Step<T>& step) {
    step.give(0, log_softmax_backward(step.grad(), y.view()));
  });
}

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, TensorView<const std::int64_t> targets,
                          std::int64_t ignore_index) {
  const FloatEnvironment environment;
  Targets<T> checked = checked_targets<T>(logits.shape(), targets, ignore_index);
  // Shared, because closures are copied.
  const auto saved = std::make_shared<Exponentials<T>>(exponentials_of<T>(logits.value(), checked));
  Tensor<T> loss(Shape{}, {mean_loss<T>(logits.value(), *saved, checked)});
  return record<T>("cross_entropy", std::move(loss), {logits},
                   [saved, checked = std::move(checked)](Step<T>& step) {
                     Tensor<T> grad = step.is_last() ? std::move(saved->elements) : saved->elements;
                     cross_entropy_backward(*step.grad().data(), *saved, checked, grad);
                     step.give(0, std::move(grad));
                   });
}

template HEED_API Variable<float> softmax(const Variable<float>&);
template HEED_API Variable<double> softmax(const Variable<double>&);
template HEED_API Variable<float> log_softmax(const Variable<float>&);
template HEED_API Variable<double> log_softmax(const Variable<double>&);
template HEED_API Variable<float> cross_entropy(const Variable<float>&,
                                                TensorView<const std::int64_t>, std::int64_t);
template HEED_API Variable<double> cross_entropy(const Variable<double>&,
                                                 TensorView<const std::int64_t>, std::int64_t);

}}}  // namespace heed::v0::nn
