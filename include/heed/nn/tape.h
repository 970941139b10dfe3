/// What a differentiable function is made of: its value, and how a gradient passes through it.
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

/// A value kept for the backward pass. It keeps no graph alive, so that graphs are no chains of
/// closures.
template <class T>
class HEED_API Saved {
 public:
  Saved() = default;
  explicit Saved(Value<T> value)
      : value_(std::move(value)), version_(value_.is_defined() ? value_.version() : 0) {}
  explicit Saved(const Variable<T>& variable) : Saved(variable.shared_value()) {}

  bool is_defined() const noexcept { return value_.is_defined(); }
  const Shape& shape() const& noexcept { return value_.shape(); }

  /// @throws InvalidArgument when the elements have been written to since.
  TensorView<const T> view() const&;
  void view() const&& HEED_DELETED("name it first: it may end before the result");

 private:
  Value<T> value_;
  std::uint64_t version_ = 0;
};

/// One function's turn in a backward pass: the gradient of its value comes, those of its inputs go.
template <class T>
class HEED_API Step {
 public:
  /// For the library's own use.
  Step(detail::Node<T>& node, Tensor<T> grad, bool is_last)
      : node_(node), grad_(std::move(grad)), is_last_(is_last) {}

  TensorView<const T> grad() const& noexcept { return grad_.view(); }
  void grad() const&& HEED_DELETED("name it first: it may end before the result");
  /// The gradient, to be passed on; grad() is empty afterwards.
  Tensor<T> take_grad() noexcept { return std::move(grad_); }
  /// Whether no other pass can follow, so that what is kept for this function alone may be used up.
  bool is_last() const noexcept { return is_last_; }

  /// Whether anybody wants the gradient of input `input`.
  bool wants(std::size_t input) const noexcept;
  /// Adds `grad` to the gradient of an input, if it is wanted.
  void give(std::size_t input, Tensor<T> grad);
  /// Whether a wanted input has been given a gradient already.
  bool has_sum(std::size_t input) const noexcept;
  /// The gradient of a wanted input so far, 0 if there is none, to add to.
  TensorView<T> sum_for(std::size_t input);

 private:
  detail::Node<T>& node_;
  Tensor<T> grad_;
  bool is_last_;
};

/// Passes a gradient on from a value to its inputs.
template <class T>
using Backward = std::function<void(Step<T>&)>;

/// Whether record() keeps what leads back to these inputs: gradients are enabled here, and one of
/// them requires one.
template <class T>
HEED_API bool is_recorded(const std::vector<Variable<T>>& inputs);

/// The variable `value`, computed from `inputs` by the function called `name`, a literal. Without
/// an input that requires a gradient, or under NoGrad, it is a constant, and `backward` is dropped.
/// Inputs that are not defined are allowed and get no gradient.
template <class T>
HEED_API Variable<T> record(const char* name, Value<T> value,
                            const std::vector<Variable<T>>& inputs, Backward<T> backward);

extern template class Saved<float>;
extern template class Saved<double>;
extern template class Step<float>;
extern template class Step<double>;

}}}  // namespace heed::v0::nn
