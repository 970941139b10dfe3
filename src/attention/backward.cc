// The gradients of attention: check, decide, compute.
#include "attention/fused/backward.h"

#include <algorithm>

#include "attention/problem.h"
#include "attention/target.h"
#include "heed/attention_backward.h"
#include "heed/parallel.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kFunction = "attention_backward";

template <class Real>
void check_tensors(const AttentionShapes& shapes, TensorView<const Real> grad_out,
                   const AttentionOutputView<Real>& forward) {
  const Shape rows{shapes.batch, shapes.num_heads, shapes.q_len};
  const Shape out{shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim};
  check_tensor<Real>(kFunction, "grad_out", grad_out, out);
  check_tensor<Real>(kFunction, "forward.out", forward.out, out);
  check_tensor<Real>(kFunction, "forward.lse", forward.lse, rows);
}

}  // namespace

AttentionGradients<float> attention_backward(FloatView grad_out, FloatView query, FloatView key,
                                             FloatView value,
                                             const AttentionOutputView<float>& forward,
                                             const AttentionOptions& options) {
  const AttentionShapes shapes = check_shapes(kFunction, query, key, value);
  const Terms<float> terms = check_terms(kFunction, shapes, options);
  check_tensors(shapes, grad_out, forward);
  const auto* table = kernels_in_use();
  if (table == nullptr || std::max(shapes.head_dim, shapes.value_dim) > kernels::kMaxDim) {
    return reference::attention_backward(grad_out, query, key, value, options);
  }
  return fused::backward(fused::make_backward_schedule(*table, terms, shapes, num_threads()),
                         {grad_out, query, key, value, forward.out, forward.lse}, terms,
                         options.bias ? &options.bias->shape() : nullptr);
}

AttentionGradients<double> attention_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                              DoubleView value,
                                              const AttentionOutputView<double>& forward,
                                              const AttentionOptions64& options) {
  check_tensors(check_shapes(kFunction, query, key, value), grad_out, forward);
  return reference::attention_backward(grad_out, query, key, value, options);
}

}  // namespace heed::inline v0
