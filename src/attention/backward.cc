// The gradients of attention: check, decide, compute.
#include "attention/problem.h"
#include "heed/attention_backward.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kFunction = "attention_backward";

template <class Real>
void check_tensors(const AttentionShapes& shapes, TensorView<const Real> grad_out,
                   const AttentionOutput<Real>& forward) {
  const Shape rows{shapes.batch, shapes.num_heads, shapes.q_len};
  const Shape out{shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim};
  check_tensor<Real>(kFunction, "grad_out", grad_out, out);
  check_tensor<Real>(kFunction, "forward.out", forward.out, out);
  check_tensor<Real>(kFunction, "forward.lse", forward.lse, rows);
}

}  // namespace

AttentionGradients<float> attention_backward(FloatView grad_out, FloatView query, FloatView key,
                                             FloatView value, const AttentionOutput<float>& forward,
                                             const AttentionOptions& options) {
  check_tensors(check_shapes(kFunction, query, key, value), grad_out, forward);
  return reference::attention_backward(grad_out, query, key, value, options);
}

AttentionGradients<double> attention_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                              DoubleView value,
                                              const AttentionOutput<double>& forward,
                                              const AttentionOptions64& options) {
  check_tensors(check_shapes(kFunction, query, key, value), grad_out, forward);
  return reference::attention_backward(grad_out, query, key, value, options);
}

}  // namespace heed::inline v0
