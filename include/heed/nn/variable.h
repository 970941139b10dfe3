/// A tensor that remembers how it was made, so that gradients can flow back: the tape.
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

/// Contiguous elements in a shape, shared by every handle to them: what a Variable holds, without
/// the memory of how it was made.
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
  /// Of a temporary, which may be the last handle to them, there is no view.
  /// @throws InvalidArgument when no tensor was given. So do the functions below.
  TensorView<const T> view() const& { return {storage().tensor.data(), shape_}; }
  void view() const&& HEED_DELETED("name it first: it may end before the result");

  /// A view to write to. What was saved for a backward pass before can no longer be used by it.
  TensorView<T> writable() const& {
    ++storage().version;
    return {storage().tensor.data(), shape_};
  }
  void writable() const&& HEED_DELETED("name it first: it may end before the result");
  std::uint64_t version() const { return storage().version; }

  /// The same elements in another shape of as many.
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

/// How backward() treats the graph it walks.
struct BackwardOptions {
  /// Keeps what the graph has saved, so that backward() can be called again.
  bool retain_graph = false;
  /// Would record the backward pass itself. There are no gradients of gradients: an error.
  bool create_graph = false;
};

/// A tensor of T (float or double), and its gradient. A copy is another handle to the same value
/// and the same gradient, as in PyTorch.
///
///     Variable x(Tensor<float>({2}, {1, 2}), true);
///     sum(x * x).backward();
///     x.grad();  // 2, 4
///
/// value() and grad() are views, and end with the last handle. Asked of a temporary, which may be
/// that handle, they are tensors of their own: `const auto y = model.forward(x).value()` owns its
/// elements.
///
/// A graph of variables must not be used by two threads at a time.
template <class T = float>
class HEED_API Variable {
 public:
  using Element = T;

  /// No tensor at all: what stands for an optional argument that is left out.
  Variable() = default;

  /// A leaf: a value that was given, not computed. Constants are leaves that require no gradient.
  Variable(Tensor<T> value, bool requires_grad = false)  // NOLINT(google-explicit-constructor)
      : Variable(Value<T>(std::move(value)), requires_grad) {}
  explicit Variable(Value<T> value, bool requires_grad = false);

  bool is_defined() const noexcept { return value_.is_defined(); }
  const Shape& shape() const& noexcept { return value_.shape(); }
  Shape shape() const&& noexcept { return value_.shape(); }
  int rank() const noexcept { return shape().rank(); }
  std::int64_t extent(int dim) const noexcept { return shape()[dim]; }
  std::int64_t num_elements() const noexcept { return shape().num_elements(); }

  /// The elements, row-major without gaps.
  TensorView<const T> value() const& { return value_.view(); }
  Tensor<T> value() const&& { return to_tensor(value_.view()); }
  const Value<T>& shared_value() const& noexcept { return value_; }
  Value<T> shared_value() const&& noexcept { return value_; }

  /// The elements, to be changed in place, as an optimiser does. A backward pass that needs what
  /// they were throws.
  TensorView<T> writable_value() const& { return value_.writable(); }
  void writable_value() const&& HEED_DELETED("name it first: it may end before the result");

  /// The only element. @throws InvalidArgument when there are more or fewer.
  T item() const;

  /// Whether backward() computes a gradient for this variable, or through it.
  bool requires_grad() const noexcept;
  /// @throws InvalidArgument unless the variable is a leaf.
  void set_requires_grad(bool requires_grad) const;
  /// Whether the value was given rather than computed from what requires a gradient.
  bool is_leaf() const noexcept;

  /// Whether a gradient has been accumulated since zero_grad(). Only leaves keep theirs.
  bool has_grad() const noexcept;
  /// The derivative of everything backward() was called on with respect to this leaf, summed up.
  /// @throws InvalidArgument when there is none.
  TensorView<const T> grad() const&;
  Tensor<T> grad() const&& { return to_tensor(grad()); }
  TensorView<T> writable_grad() const&;
  void writable_grad() const&& HEED_DELETED("name it first: it may end before the result");
  /// Forgets the gradient.
  void zero_grad() const noexcept;

  /// The same value as a leaf that requires no gradient.
  Variable detach() const { return Variable(value_); }

  /// Adds to every leaf that requires a gradient the derivative of this variable, which must have
  /// one element. The graph is released, so that this can be done once.
  /// @throws InvalidArgument when nothing here requires a gradient, when the graph was released
  /// before, when a value that is needed has been overwritten, or for create_graph.
  void backward(const BackwardOptions& options = {}) const;
  /// The same for Σ grad ∘ this, with `grad` of this variable's shape.
  void backward(TensorView<const T> grad, const BackwardOptions& options = {}) const;

  /// For functions that record themselves (tape.h).
  Variable(Value<T> value, std::shared_ptr<detail::Node<T>> node);
  const std::shared_ptr<detail::Node<T>>& node() const noexcept { return node_; }

 private:
  Value<T> value_;
  std::shared_ptr<detail::Node<T>> node_;
};

/// While one lives, nothing is recorded on this thread: values are computed as constants.
class HEED_API NoGrad {
 public:
  NoGrad() noexcept;
  ~NoGrad();
  NoGrad(const NoGrad&) = delete;
  NoGrad& operator=(const NoGrad&) = delete;
};

/// Whether computations on this thread are recorded.
HEED_API bool is_grad_enabled() noexcept;

extern template class Variable<float>;
extern template class Variable<double>;

}}}  // namespace heed::v0::nn
