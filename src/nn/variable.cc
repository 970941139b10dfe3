#include "heed/nn/variable.h"

#include <fmt/format.h>

#include <string>

#include "nn/node.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

thread_local int no_grad_depth = 0;

}  // namespace

NoGrad::NoGrad() noexcept { ++no_grad_depth; }
NoGrad::~NoGrad() { --no_grad_depth; }
bool is_grad_enabled() noexcept { return no_grad_depth == 0; }

void detail::throw_undefined() {
  throw InvalidArgument("Variable: a value is expected, but the variable has none");
}

template <class T>
Variable<T>::Variable(Value<T> value, bool requires_grad)
    : value_(std::move(value)),
      node_(std::make_shared<detail::Node<T>>(value_.shape(), requires_grad)) {}

template <class T>
Variable<T>::Variable(Value<T> value, std::shared_ptr<detail::Node<T>> node)
    : value_(std::move(value)), node_(std::move(node)) {}

template <class T>
T Variable<T>::item() const {
  if (!is_defined() || num_elements() != 1) {
    throw InvalidArgument(
        fmt::format("Variable::item: the variable has {}, expected one element",
                    is_defined() ? "shape " + to_string(shape()) : std::string("no value")));
  }
  return *value().data();
}

template <class T>
bool Variable<T>::requires_grad() const noexcept {
  return node_ != nullptr && node_->requires_grad;
}

template <class T>
void Variable<T>::set_requires_grad(bool requires_grad) const {
  if (node_ == nullptr || !node_->is_leaf()) {
    throw InvalidArgument(
        fmt::format("Variable::set_requires_grad: the variable {}, expected a leaf",
                    node_ == nullptr ? "has no value" : fmt::format("comes from {}", node_->name)));
  }
  node_->requires_grad = requires_grad;
}

template <class T>
bool Variable<T>::is_leaf() const noexcept {
  return node_ == nullptr || node_->is_leaf();
}

template <class T>
bool Variable<T>::has_grad() const noexcept {
  return node_ != nullptr && node_->has_grad;
}

template <class T>
TensorView<const T> Variable<T>::grad() const& {
  return writable_grad();
}

template <class T>
TensorView<T> Variable<T>::writable_grad() const& {
  if (!has_grad()) {
    throw InvalidArgument(fmt::format(
        "Variable::grad: the variable has no gradient; it {}",
        !is_leaf()        ? "is computed, and only leaves keep theirs: use detach() to make one"
        : requires_grad() ? "was not reached by backward() since zero_grad()"
                          : "does not require one"));
  }
  return node_->grad.view();
}

template <class T>
void Variable<T>::zero_grad() const noexcept {
  if (node_ != nullptr) node_->take_grad();
}

template <class T>
void Variable<T>::backward(const BackwardOptions& options) const {
  if (num_elements() != 1) {
    throw InvalidArgument(fmt::format(
        "Variable::backward: the variable has shape {}; without a gradient for it, one element is "
        "expected",
        to_string(shape())));
  }
  detail::run_backward<T>(*this, Tensor<T>(shape(), {T{1}}), options);
}

template <class T>
void Variable<T>::backward(TensorView<const T> grad, const BackwardOptions& options) const {
  if (grad.shape() != shape()) {
    throw InvalidArgument(fmt::format("Variable::backward: grad has shape {} but the variable {}",
                                      to_string(grad.shape()), to_string(shape())));
  }
  detail::run_backward<T>(*this, to_tensor(grad), options);
}

template class Variable<float>;
template class Variable<double>;

}}}  // namespace heed::v0::nn
