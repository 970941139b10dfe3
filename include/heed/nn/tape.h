/// Differentiable functions in user code: a value, and the gradients of its inputs.
///
///     Variable<T> square(const Variable<T>& x) {
///       return record<T>("square", map(x.value(), …), {x}, [x = Saved(x)](Step<T>& step) {
///         step.give(0, map(step.grad(), x.view(), [](T grad, T x) { return 2 * x * grad; }));
///       });
///     }
#pragma once

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// A value stored for the backward pass. It does not keep the graph alive: a graph is not a chain
/// of closures.
template <class T>
class HEED_API Saved {
 public:
  Saved() = default;
  explicit Saved(Value<T> value)
      : value_(std::move(value)), version_(value_.is_defined() ? value_.version() : 0) {}
  explicit Saved(const Variable<T>& variable) : Saved(variable.shared_value()) {}

  bool is_defined() const noexcept { return value_.is_defined(); }
  const Shape& shape() const& noexcept { return value_.shape(); }

  /// @throws InvalidArgument when the elements have been written to since they were saved.
  TensorView<const T> view() const&;
  void view() const&& HEED_DELETED("name it first: it may end before the result");

 private:
  Value<T> value_;
  std::uint64_t version_ = 0;
};

/// The step of one function in a backward pass: from the gradient of its value to those of its
/// inputs.
template <class T>
class HEED_API Step {
 public:
  /// Internal.
  Step(detail::Node<T>& node, Tensor<T> grad, bool is_last)
      : node_(node), grad_(std::move(grad)), is_last_(is_last) {}

  TensorView<const T> grad() const& noexcept { return grad_.view(); }
  void grad() const&& HEED_DELETED("name it first: it may end before the result");
  /// Moves the gradient out; grad() is empty afterwards.
  Tensor<T> take_grad() noexcept { return std::move(grad_); }
  /// True if no other pass can follow, so that memory saved for this function alone may be reused.
  bool is_last() const noexcept { return is_last_; }

  /// True if the gradient of input `input` is needed.
  bool wants(std::size_t input) const noexcept;
  /// Adds `grad` to the gradient of an input, if it is needed.
  void give(std::size_t input, Tensor<T> grad);
  /// True if an input already has a gradient.
  bool has_sum(std::size_t input) const noexcept;
  /// The gradient of an input so far, 0 if there is none, to add to.
  TensorView<T> sum_for(std::size_t input);

 private:
  detail::Node<T>& node_;
  Tensor<T> grad_;
  bool is_last_;
};

/// The function that computes gradients of inputs from the gradient of the value.
template <class T>
using Backward = std::function<void(Step<T>&)>;

/// True if record() would record a function of these inputs: gradients are enabled here, and one of
/// the inputs requires one.
template <class T>
HEED_API bool is_recorded(const std::vector<Variable<T>>& inputs);

/// The variable `value`, computed from `inputs` by the function with the name `name`, a literal.
/// Without an input that requires a gradient, or under NoGrad, it is a constant, and `backward` is
/// not stored. Inputs may be undefined and then get no gradient.
template <class T>
HEED_API Variable<T> record(const char* name, Value<T> value,
                            const std::vector<Variable<T>>& inputs, Backward<T> backward);

extern template class Saved<float>;
extern template class Saved<double>;
extern template class Step<float>;
extern template class Step<double>;

}}}  // namespace heed::v0::nn
