/// Automatic differentiation: tensors that record how they were computed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "heed/core/config.h"
#include "heed/core/tensor.h"

/// Gradients, layers and optimisers, with PyTorch's names, shapes and defaults.
namespace heed { inline namespace v0 { namespace nn {

namespace detail {

template <class T>
struct Storage {
  Tensor<T> tensor;
  std::uint64_t version = 0;  // counts the writes
};

template <class T>
struct Node;

[[noreturn]] HEED_API void throw_undefined();

}  // namespace detail

/// Shared contiguous elements with a shape: the value of a Variable, without the record of its
/// computation.
template <class T>
class Value {
 public:
  Value() = default;
  Value(Tensor<T> tensor)  // NOLINT(google-explicit-constructor): takes the tensor over
      : shape_(tensor.shape()),
        storage_(std::make_shared<detail::Storage<T>>(detail::Storage<T>{std::move(tensor)})) {}

  bool is_defined() const noexcept { return storage_ != nullptr; }
  const Shape& shape() const& noexcept { return shape_; }
  Shape shape() const&& noexcept { return shape_; }
  /// The view of a temporary does not compile, because the temporary may be the last handle.
  /// @throws InvalidArgument when there is no tensor. The functions below throw it too.
  TensorView<const T> view() const& { return {storage().tensor.data(), shape_}; }
  void view() const&& HEED_DELETED("name it first: it may end before the result");

  /// A view for writing. A backward pass can no longer use elements that it saved before.
  TensorView<T> writable() const& {
    ++storage().version;
    return {storage().tensor.data(), shape_};
  }
  void writable() const&& HEED_DELETED("name it first: it may end before the result");
  std::uint64_t version() const { return storage().version; }

  /// The same elements in another shape.
  Value reshaped(const Shape& shape) const {
    Value result = *this;
    result.shape_ = view().reshape(shape).shape();
    return result;
  }

 private:
  detail::Storage<T>& storage() const {
    if (storage_ == nullptr) detail::throw_undefined();
    return *storage_;
  }

  Shape shape_;
  std::shared_ptr<detail::Storage<T>> storage_;
};

/// The options of backward().
struct BackwardOptions {
  /// Keeps the saved values of the graph, so that backward() can be called again.
  bool retain_graph = false;
  /// Would record the backward pass itself. Second derivatives are not supported: an error.
  bool create_graph = false;
};

/// A tensor of T (float or double), and its gradient. A copy is another handle to the same value
/// and the same gradient, as in PyTorch.
///
///     Variable x(Tensor<float>({2}, {1, 2}), true);
///     sum(x * x).backward();
///     x.grad();  // 2, 4
///
/// value() and grad() are views that are valid as long as a handle exists. Called on a temporary,
/// which may be the last handle, they return tensors: `const auto y = model.forward(x).value()`
/// owns its elements.
///
/// A graph of variables must not be used by two threads at a time.
template <class T = float>
class HEED_API Variable {
 public:
  using Element = T;

  /// No tensor: used for optional arguments.
  Variable() = default;

  /// A leaf: a value that is given, not computed. Constants are leaves that require no gradient.
  Variable(Tensor<T> value, bool requires_grad = false)  // NOLINT(google-explicit-constructor)
      : Variable(Value<T>(std::move(value)), requires_grad) {}
  explicit Variable(Value<T> value, bool requires_grad = false);

  bool is_defined() const noexcept { return value_.is_defined(); }
  const Shape& shape() const& noexcept { return value_.shape(); }
  Shape shape() const&& noexcept { return value_.shape(); }
  int rank() const noexcept { return shape().rank(); }
  std::int64_t extent(int dim) const noexcept { return shape()[dim]; }
  std::int64_t num_elements() const noexcept { return shape().num_elements(); }

  /// The elements, row-major and contiguous.
  TensorView<const T> value() const& { return value_.view(); }
  Tensor<T> value() const&& { return to_tensor(value_.view()); }
  const Value<T>& shared_value() const& noexcept { return value_; }
  Value<T> shared_value() const&& noexcept { return value_; }

  /// The elements for writing in place, as an optimiser does. A backward pass that needs the old
  /// elements throws.
  TensorView<T> writable_value() const& { return value_.writable(); }
  void writable_value() const&& HEED_DELETED("name it first: it may end before the result");

  /// The only element. @throws InvalidArgument when there are more or fewer.
  T item() const;

  /// True if backward() computes a gradient for this variable, or through it.
  bool requires_grad() const noexcept;
  /// @throws InvalidArgument unless the variable is a leaf.
  void set_requires_grad(bool requires_grad) const;
  /// True if the value was given, or computed only from values that require no gradient.
  bool is_leaf() const noexcept;

  /// True if a gradient has been accumulated since zero_grad(). Only leaves keep theirs.
  bool has_grad() const noexcept;
  /// The derivative with respect to this leaf, summed over all calls of backward().
  /// @throws InvalidArgument when there is none.
  TensorView<const T> grad() const&;
  Tensor<T> grad() const&& { return to_tensor(grad()); }
  TensorView<T> writable_grad() const&;
  void writable_grad() const&& HEED_DELETED("name it first: it may end before the result");
  /// Removes the gradient.
  void zero_grad() const noexcept;

  /// The same value as a leaf that requires no gradient.
  Variable detach() const { return Variable(value_); }

  /// Adds the derivative of this variable, which must have one element, to the gradient of every
  /// leaf that requires one. The graph is released, so that this can be done once.
  /// @throws InvalidArgument when nothing here requires a gradient, when the graph was released
  /// before, when a needed value has been overwritten, or for create_graph.
  void backward(const BackwardOptions& options = {}) const;
  /// backward() of Σ grad ∘ this, with `grad` of this variable's shape.
  void backward(TensorView<const T> grad, const BackwardOptions& options = {}) const;

  /// Internal: for functions that record themselves (tape.h).
  Variable(Value<T> value, std::shared_ptr<detail::Node<T>> node);
  const std::shared_ptr<detail::Node<T>>& node() const noexcept { return node_; }

 private:
  Value<T> value_;
  std::shared_ptr<detail::Node<T>> node_;
};

/// During the lifetime of this object, computations on this thread are not recorded: results are
/// constants.
class HEED_API NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
};

/// True if computations on this thread are recorded.
HEED_API bool is_grad_enabled() noexcept;

extern template class Variable<float>;
extern template class Variable<double>;

}}}  // namespace heed::v0::nn
