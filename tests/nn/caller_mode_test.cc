// Training does not depend on the floating-point mode of the caller.
#include "support/caller_mode.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

#include "attention/bits/hash.h"
#include "heed/nn/init.h"
#include "heed/nn/lstm.h"
#include "heed/nn/ops.h"
#include "heed/nn/optimizer.h"
#include "support/tensors.h"

namespace heed::nn::caller_mode { namespace {

using bits::Hash;

// Normal numbers, of which every seventh is subnormal; made before any mode is set.
const Tensor<float>& drawn(const Shape& shape, std::uint32_t seed) {
  static std::array<Tensor<float>, 8> kept;
  Tensor<float>& tensor = kept.at(seed);
  if (!tensor.empty()) return tensor;
  tensor = testing_support::normal<float>(shape, seed);
  std::size_t i = 0;
  for (float& number : tensor.elements()) {
    if (i++ % 7 == 0) number *= 0x1p-135F;
  }
  return tensor;
}

// The hash of a result and of its gradients.
template <class F>
auto forward_and_backward(F function) {
  return [function] {
    const Variable<float> x(drawn({5, 12}, 1), true);
    const Variable<float> weight(drawn({12, 12}, 2), true);
    const Variable<float> y = function(x, weight);
    y.backward(drawn(y.shape(), y.num_elements() == 1 ? 3 : y.num_elements() == 60 ? 4 : 5));
    Hash hash;
    hash.add(y.value());
    for (const auto& input : {x, weight}) {
      if (input.has_grad()) hash.add(input.grad());
    }
    return hash.value();
  };
}

TEST(CallerMode, ChangesNoFunctionOfTheTape) {
  using V = Variable<float>;
  static const Tensor<std::int64_t> targets({5}, {3, 0, 11, 7, 7});
  expect_no_influence_of_the_caller({
      {"add", forward_and_backward([](const V& x, const V&) { return add(x, x); })},
      {"mul", forward_and_backward([](const V& x, const V&) { return mul(x, x); })},
      {"scale", forward_and_backward([](const V& x, const V&) { return scale(x, 0.1); })},
      {"sum", forward_and_backward([](const V& x, const V&) { return sum(x); })},
      {"mean", forward_and_backward([](const V& x, const V&) { return mean(x); })},
      {"linear", forward_and_backward([](const V& x, const V& w) { return linear(x, w, V()); })},
      {"tanh", forward_and_backward([](const V& x, const V&) { return tanh(x); })},
      {"sigmoid", forward_and_backward([](const V& x, const V&) { return sigmoid(x); })},
      {"exp", forward_and_backward([](const V& x, const V&) { return exp(x); })},
      {"log", forward_and_backward([](const V& x, const V&) { return log(mul(x, x)); })},
      {"softmax", forward_and_backward([](const V& x, const V&) { return softmax(x); })},
      {"log_softmax", forward_and_backward([](const V& x, const V&) { return log_softmax(x); })},
      {"cross_entropy",
       forward_and_backward([](const V& x, const V&) { return cross_entropy(x, targets.view()); })},
      {"layer_norm", forward_and_backward([](const V& x, const V&) {
         static const V ones(Tensor<float>({12}, std::vector<float>(12, 1.1F)));
         return layer_norm(x, ones, ones);
       })},
      {"lstm", forward_and_backward([](const V& x, const V& w) {
         const LstmParameters<float> parameters{reshape(w, {12, 12}), slice(w, 1, 0, 3)};
         return lstm(reshape(x, {1, 5, 12}), parameters).out;
       })},
  });
}

TEST(CallerMode, ChangesNoStepOfAnOptimizer) {
  expect_no_influence_of_the_caller({
      {"AdamW and clip_grad_norm",
       [] {
         const Variable<float> parameter(drawn({12, 12}, 2), true);
         AdamW<float> adam({parameter}, 1e-3);
         Hash hash;
         for (int step = 0; step < 3; ++step) {
           adam.zero_grad();
           mean(mul(parameter, parameter)).backward();
           hash.add_number(clip_grad_norm<float>({parameter}, 0.01));
           adam.step();
         }
         hash.add(parameter.value());
         return hash.value();
       }},
      {"WarmupCosine",
       [] {
         const WarmupCosine rate{.peak = 0.1, .warmup_steps = 3, .total_steps = 17};
         Hash hash;
         for (int step = 0; step < 17; ++step) hash.add_number(rate(step));
         return hash.value();
       }},
      {"linear_init",
       [] {
         TorchGenerator generator(1);
         const auto made = linear_init<float>(generator, 7, 5);
         Hash hash;
         hash.add(made.weight);
         return hash.value();
       }},
  });
}

}  // namespace
}  // namespace heed::nn::caller_mode
