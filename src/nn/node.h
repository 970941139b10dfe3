// A node of the graph: the record of a variable that gradients follow.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "heed/core/parallel.h"
#include "heed/nn/tape.h"
#include "nn/ops/elementwise.h"

namespace heed { inline namespace v0 { namespace nn::detail {

template <class T>
struct Node {
  Node(const Shape& of_value, bool wants_grad) : shape(of_value), requires_grad(wants_grad) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Iterative: a chain of a million nodes must not cause a million nested destructor calls.
  ~Node() {
    std::vector<std::shared_ptr<Node>> orphans = std::move(inputs);
    while (!orphans.empty()) {
      const std::shared_ptr<Node> node = std::move(orphans.back());
      orphans.pop_back();
      if (node == nullptr || node.use_count() > 1) continue;
      for (auto& input : node->inputs) orphans.push_back(std::move(input));
      node->inputs.clear();
    }
  }

  bool is_leaf() const { return name == nullptr; }

  void accumulate(Tensor<T> more) {
    if (!has_grad) {
      grad = std::move(more);
      has_grad = true;
      return;
    }
    T* const sum = grad.data();
    const T* const addend = more.data();
    parallel_for(0, grad.num_elements(), kElementGrain, [=](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) sum[i] += addend[i];
    });
  }

  Tensor<T> take_grad() {
    has_grad = false;
    return std::exchange(grad, Tensor<T>());
  }

  Shape shape;
  bool requires_grad;
  bool has_grad = false;
  bool is_released = false;
  Tensor<T> grad;
  const char* name = nullptr;                 // the function that made the value
  std::vector<std::shared_ptr<Node>> inputs;  // null for an input without a gradient
  Backward<T> backward;
};

// Called with a leaf once its gradient is final in this pass.
template <class T>
using LeafIsDone = std::function<void(const Node<T>& leaf)>;

// Propagates `grad`, the gradient of `root`, to everything that `root` was computed from. Throws
// InvalidArgument as Variable::backward() does.
template <class T>
void run_backward(const Variable<T>& root, Tensor<T> grad, const BackwardOptions& options,
                  const LeafIsDone<T>& leaf_is_done = {});

}}}  // namespace heed::v0::nn::detail
