#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "heed/dual.h"
#include "heed/nn/ops.h"
#include "heed/reference.h"
#include "nn/ops/elementwise.h"
#include "nn/ops/shapes.h"

namespace heed::inline v0::nn {

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

// Σ x, in eight sums of which none waits for the others.
template <class T>
double sum_of(const T* x, std::size_t size) {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= size; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += x[i + j];
  }
  for (; i < size; ++i) sums[0] += x[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// (x − max x) − log Σ exp(x − max x): in this order, for a log Σ exp(x) of 1000 would carry an
// error of 3e-5 into every element. The exponentials are written down first, which compilers turn
// into vector code; added up as they come they took 9 % of a step of training with 8,000 words.
template <class T>
void log_softmax_row(std::span<const T> x, T* y) {
  const T largest = *std::max_element(x.begin(), x.end());
  std::transform(x.begin(), x.end(), y, [=](T element) { return heed::exp(element - largest); });
  const auto log_sum = static_cast<T>(std::log(sum_of(y, x.size())));
  std::transform(x.begin(), x.end(), y, [=](T element) { return (element - largest) - log_sum; });
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
  std::vector<std::int64_t> classes;  // of each row, −1 where it is ignored
  T count = 0;                        // of those that are not
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

template <class T>
T mean_loss(TensorView<const T> log_weights, const Targets<T>& targets) {
  double sum = 0;
  for (std::size_t row = 0; row < targets.classes.size(); ++row) {
    const std::int64_t target = targets.classes[row];
    if (target < 0) continue;
    sum -= row_of<T>(log_weights, static_cast<std::int64_t>(row))[static_cast<std::size_t>(target)];
  }
  return static_cast<T>(sum / targets.count);
}

// (softmax(x) − [target]) · grad / count
template <class T>
Tensor<T> cross_entropy_backward(T grad, TensorView<const T> log_weights,
                                 const Targets<T>& targets) {
  Tensor<T> result(log_weights.shape());
  const T factor = grad / targets.count;
  for_each_row(log_weights.shape(), [&](std::int64_t row) {
    const std::int64_t target = targets.classes[static_cast<std::size_t>(row)];
    if (target < 0) return;
    const auto logs = row_of<T>(log_weights, row);
    T* out = result.data() + row * log_weights.extent(-1);
    std::transform(logs.begin(), logs.end(), out,
                   [factor](T log_weight) { return heed::exp(log_weight) * factor; });
    out[target] -= factor;
  });
  return result;
}

}  // namespace

template <class T>
Variable<T> softmax(const Variable<T>& x) {
  const Value<T> y(reference::softmax(x.value()));
  return record<T>("softmax", y, {x}, [y = Saved(y)](Step<T>& step) {
    step.give(0, reference::softmax_backward(step.grad(), y.view()));
  });
}

template <class T>
Variable<T> log_softmax(const Variable<T>& x) {
  check_rows("log_softmax", x.shape());
  const Value<T> y(log_softmax_of(x.value()));
  return record<T>("log_softmax", y, {x}, [y = Saved(y)](Step<T>& step) {
    step.give(0, log_softmax_backward(step.grad(), y.view()));
  });
}

template <class T>
Variable<T> cross_entropy(const Variable<T>& logits, TensorView<const std::int64_t> targets,
                          std::int64_t ignore_index) {
  Targets<T> checked = checked_targets<T>(logits.shape(), targets, ignore_index);
  const Value<T> log_weights(log_softmax_of(logits.value()));
  Tensor<T> loss(Shape{}, {mean_loss(log_weights.view(), checked)});
  return record<T>(
      "cross_entropy", std::move(loss), {logits},
      [log_weights, checked = std::move(checked)](Step<T>& step) {
        step.give(0, cross_entropy_backward(*step.grad().data(), log_weights.view(), checked));
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

}  // namespace heed::inline v0::nn
