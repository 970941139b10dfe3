// The gradients of attention: check, plan, run.
#include "attention/gradient_tensors.h"
#include "attention/plan.h"
#include "heed/attention_backward.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kFunction = "attention_backward";

template <class T>
AttentionGradients<T, Computed<T>> compute(TensorView<const T> grad_out, TensorView<const T> query,
                                           TensorView<const T> key, TensorView<const T> value,
                                           const AttentionOutputView<T, Computed<T>>& forward,
                                           const BasicAttentionOptions<Computed<T>>& options) {
  using Real = Computed<T>;
  const AttentionShapes shapes = check_shapes(kFunction, query, key, value);
  const Request<Real> request = check_request(kFunction, shapes, options);
  const Shape out{shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim};
  check_tensor(kFunction, "grad_out", grad_out, out);
  check_tensor(kFunction, "forward.out", forward.out, out);
  check_tensor(kFunction, "forward.lse", forward.lse,
               {shapes.batch, shapes.num_heads, shapes.q_len});
  const Plan<Real> plan = make_plan(request, Pass::kBackward);
  GradientTensors<T> gradients(request, query.shape(), key.shape(), value.shape());
  const BackwardCall<Real> call{call_of(request, query, key, value), rows_of(grad_out),
                                rows_of(forward.out), forward.lse, gradients.targets()};
  plan.backend->backward({&call, 1}, plan.schedule);
  return std::move(gradients).take();
}

}  // namespace

AttentionGradients<float> attention_backward(FloatView grad_out, FloatView query, FloatView key,
                                             FloatView value,
                                             const AttentionOutputView<float>& forward,
                                             const AttentionOptions& options) {
  return compute(grad_out, query, key, value, forward, options);
}

AttentionGradients<Float16, float> attention_backward(
    Float16View grad_out, Float16View query, Float16View key, Float16View value,
    const AttentionOutputView<Float16, float>& forward, const AttentionOptions& options) {
  return compute(grad_out, query, key, value, forward, options);
}

AttentionGradients<BFloat16, float> attention_backward(
    BFloat16View grad_out, BFloat16View query, BFloat16View key, BFloat16View value,
    const AttentionOutputView<BFloat16, float>& forward, const AttentionOptions& options) {
  return compute(grad_out, query, key, value, forward, options);
}

AttentionGradients<double> attention_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                              DoubleView value,
                                              const AttentionOutputView<double>& forward,
                                              const AttentionOptions64& options) {
  return compute(grad_out, query, key, value, forward, options);
}

}  // namespace heed::inline v0
