#include "heed/nn/tape.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/float_environment.h"
#include "nn/node.h"
#include "nn/ops/elementwise.h"

namespace heed { inline namespace v0 { namespace nn {

namespace {

template <class T>
using NodePointer = std::shared_ptr<detail::Node<T>>;

// The nodes from which `root` was computed, each after all of its inputs. They are kept alive, so
// that releasing one destroys none. Uses its own stack, because graphs of sequence models are deep.
template <class T>
std::vector<NodePointer<T>> inputs_first(const NodePointer<T>& root) {
  struct Visit {
    NodePointer<T> node;
    std::size_t next_input = 0;
  };
  std::vector<NodePointer<T>> order;
  std::vector<Visit> stack{{root}};
  std::unordered_set<const detail::Node<T>*> seen{root.get()};
  while (!stack.empty()) {
    Visit& visit = stack.back();
    if (visit.next_input == visit.node->inputs.size()) {
      order.push_back(std::move(visit.node));
      stack.pop_back();
      continue;
    }
    const NodePointer<T>& input = visit.node->inputs[visit.next_input++];
    if (input != nullptr && seen.insert(input.get()).second) stack.push_back({input});
  }
  return order;
}

template <class T>
void check_backward(const Variable<T>& variable, const BackwardOptions& options) {
  if (options.create_graph) {
    throw InvalidArgument(
        "Variable::backward: create_graph is true, but gradients of gradients are not supported");
  }
  if (!variable.requires_grad()) {
    throw InvalidArgument(
        "Variable::backward: the variable does not depend on anything that requires a gradient");
  }
}

template <class T>
void check_not_released(const std::vector<NodePointer<T>>& order) {
  for (const auto& node : order) {
    if (!node->is_released) continue;
    throw InvalidArgument(fmt::format(
        "Variable::backward: the graph behind {} was released by an earlier backward(); pass "
        "{{.retain_graph = true}} there to go through it twice",
        node->name));
  }
}

// Removes the gradients that remain when a step throws, so that the next pass does not find them.
template <class T>
class Underway {
 public:
  explicit Underway(const std::vector<NodePointer<T>>& order) : order_(order) {}
  ~Underway() {
    for (const auto& node : order_) {
      if (!node->is_leaf()) node->take_grad();
    }
  }
  Underway(const Underway&) = delete;
  Underway& operator=(const Underway&) = delete;

 private:
  const std::vector<NodePointer<T>>& order_;
};

template <class T>
void release(detail::Node<T>& node) {
  node.inputs.clear();
  node.backward = nullptr;
  node.is_released = true;
}

}  // namespace

template <class T>
void detail::run_backward(const Variable<T>& root, Tensor<T> grad, const BackwardOptions& options,
                          const LeafIsDone<T>& leaf_is_done) {
  const FloatEnvironment environment;
  check_backward(root, options);
  const std::vector<NodePointer<T>> order = inputs_first<T>(root.node());
  check_not_released<T>(order);
  const Underway<T> underway(order);
  root.node()->accumulate(std::move(grad));
  for (auto next = order.rbegin(); next != order.rend(); ++next) {
    detail::Node<T>& node = **next;
    if (node.is_leaf()) {
      if (leaf_is_done) leaf_is_done(node);
      continue;
    }
    if (node.has_grad) {
      Step<T> step(node, node.take_grad(), !options.retain_graph);
      node.backward(step);
    }
    if (!options.retain_graph) release(node);
  }
}

template <class T>
TensorView<const T> Saved<T>::view() const& {
  if (value_.version() != version_) {
    throw InvalidArgument(fmt::format(
        "Variable::backward: a value of shape {} that it needs was overwritten after it was used",
        to_string(value_.shape())));
  }
  return value_.view();
}

template <class T>
bool Step<T>::wants(std::size_t input) const noexcept {
  return node_.inputs[input] != nullptr;
}

template <class T>
void Step<T>::give(std::size_t input, Tensor<T> grad) {
  if (wants(input)) node_.inputs[input]->accumulate(std::move(grad));
}

template <class T>
bool Step<T>::has_sum(std::size_t input) const noexcept {
  return node_.inputs[input]->has_grad;
}

template <class T>
TensorView<T> Step<T>::sum_for(std::size_t input) {
  detail::Node<T>& node = *node_.inputs[input];
  if (!node.has_grad) node.accumulate(zeros<T>(node.shape));
  return node.grad.view();
}

template <class T>
bool is_recorded(const std::vector<Variable<T>>& inputs) {
  return is_grad_enabled() && std::any_of(inputs.begin(), inputs.end(),
                                          [](const auto& input) { return input.requires_grad(); });
}

template <class T>
Variable<T> record(const char* name, Value<T> value, const std::vector<Variable<T>>& inputs,
                   Backward<T> backward) {
  if (!is_recorded(inputs)) return Variable<T>(std::move(value));
  auto node = std::make_shared<detail::Node<T>>(value.shape(), true);
  node->name = name;
  node->backward = std::move(backward);
  node->inputs.reserve(inputs.size());
  for (const auto& input : inputs) {
    node->inputs.push_back(input.requires_grad() ? input.node() : nullptr);
  }
  return Variable<T>(std::move(value), std::move(node));
}

template void detail::run_backward(const Variable<float>&, Tensor<float>, const BackwardOptions&,
                                   const LeafIsDone<float>&);
template void detail::run_backward(const Variable<double>&, Tensor<double>, const BackwardOptions&,
                                   const LeafIsDone<double>&);
template class Saved<float>;
template class Saved<double>;
template class Step<float>;
template class Step<double>;
template HEED_API bool is_recorded(const std::vector<Variable<float>>&);
template HEED_API bool is_recorded(const std::vector<Variable<double>>&);
template HEED_API Variable<float> record(const char*, Value<float>,
                                         const std::vector<Variable<float>>&, Backward<float>);
template HEED_API Variable<double> record(const char*, Value<double>,
                                          const std::vector<Variable<double>>&, Backward<double>);

}}}  // namespace heed::v0::nn
