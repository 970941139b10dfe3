/// Layers and models: named parameters, buffers and parts, as in torch.nn.Module.
#pragma once

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "heed/core/config.h"
#include "heed/io/any_tensor.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// A parameter and its full name, e.g. "mha.W_q.weight".
template <class T>
struct NamedVariable {
  std::string name;
  Variable<T> variable;
};

/// A tensor of a state dict and its full name.
struct NamedView {
  std::string name;
  AnyView value;
};

/// The state of a module, with PyTorch's names and order. The views refer to the module's memory:
/// they show later changes and are valid as long as the module exists.
using StateDict = std::vector<NamedView>;

/// A part of a model. Parameters, buffers and parts are created, named and drawn from
/// default_generator() in one step each, in the order of their declaration:
///
///     struct Model : heed::nn::Module<> {
///       nn::Embedding<>& embedding = make_module<nn::Embedding<>>("embedding", 100, 32);
///       nn::Linear<>& out = make_module<nn::Linear<>>("out", 32, 100);
///       std::string class_name() const override { return "Model"; }
///     };
///
/// With the same seed and the same order, the parameters are those of PyTorch. T is float or
/// double. A module is neither copied nor moved: its parts refer to each other.
template <class T = float>
class HEED_API Module {
 public:
  Module();
  virtual ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  /// The name in the summary, in PyTorch that of the class.
  virtual std::string class_name() const = 0;
  /// The text between the parentheses of the summary.
  virtual std::string extra_repr() const;

  /// All parameters, which an optimiser may change: the module's own, then those of its parts.
  std::vector<NamedVariable<T>> named_parameters() const;
  std::vector<Variable<T>> parameters() const;
  /// The number of elements of all parameters.
  std::int64_t num_parameters() const;

  /// Sets the mode of this module and its parts; a module starts in training mode. Only dropout
  /// depends on it.
  void train(bool is_training = true);
  void eval() { train(false); }
  bool is_training() const noexcept { return is_training_; }

  /// Calls use(full name, part) for every part and its parts, e.g. with "blocks.0.attention".
  void for_each_part(const std::function<void(const std::string& name, Module& part)>& use);

  /// Removes the gradients of all parameters.
  void zero_grad() const;

  /// The module and its parts as text, in PyTorch's format.
  std::string summary() const;

  /// All parameters and buffers: for each module first its parameters, then its buffers, then its
  /// parts.
  StateDict state_dict() const&;
  void state_dict() const&& HEED_DELETED("name it first: it may end before the result");

  /// Copies every tensor of `state` to the tensor of its name, converting element types.
  /// @throws InvalidArgument, before anything is written, naming all tensors that are missing,
  /// unexpected, given twice or of another shape, and constants with other elements.
  void load_state_dict(const StateDict& state);

 protected:
  /// Creates a tensor that is learned.
  Variable<T> make_parameter(std::string name, Tensor<T> value);
  /// Creates a tensor that is not learned but part of the state.
  Variable<T> make_buffer(std::string name, Tensor<T> value);
  /// Creates a constant that is part of the state for compatibility with PyTorch: it never changes,
  /// and loading other elements is an error.
  void make_constant(std::string name, Tensor<bool> value);

  /// Creates a part from `arguments`.
  template <class M, class... Arguments>
  M& make_module(std::string name, Arguments&&... arguments) {
    auto owned = std::make_unique<M>(std::forward<Arguments>(arguments)...);
    M& part = *owned;
    parts_.emplace_back(std::move(name), std::move(owned));
    return part;
  }

  std::size_t num_parts() const noexcept { return parts_.size(); }

 private:
  // A name and its tensor.
  struct Slot {
    std::string name;
    std::variant<Variable<T>, std::shared_ptr<const Tensor<bool>>> value;
  };
  std::vector<Slot> slots() const;
  void collect_parameters(const std::string& prefix, std::vector<NamedVariable<T>>& out) const;
  void collect_slots(const std::string& prefix, std::vector<Slot>& out) const;
  void visit_parts(const std::string& prefix,
                   const std::function<void(const std::string& name, Module& part)>& use);

  std::vector<NamedVariable<T>> parameters_;
  std::vector<Slot> buffers_;
  std::vector<std::pair<std::string, std::unique_ptr<Module>>> parts_;
  bool is_training_ = true;
};

/// A module with one input and one output.
template <class T = float>
class HEED_API Layer : public Module<T> {
 public:
  virtual Variable<T> forward(const Variable<T>& x) = 0;
};

/// Writes the summary.
HEED_API std::ostream& operator<<(std::ostream& out, const Module<float>& module);
HEED_API std::ostream& operator<<(std::ostream& out, const Module<double>& module);

extern template class Module<float>;
extern template class Module<double>;
extern template class Layer<float>;
extern template class Layer<double>;

}}}  // namespace heed::v0::nn
