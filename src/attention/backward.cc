// The gradients of attention: check, plan, run.
#include <type_traits>

#include "attention/gradient_tensors.h"
#include "attention/plan.h"
#include "heed/attention_backward.h"

namespace heed::inline v0 {

namespace {

constexpr const char* kFunction = "attention_backward";

// The output of the forward pass as numbers of the type that is computed in. In half precision it
// is rounded, and Σ grad_out · out would cost the gradients most of their digits: it is computed
// again.
template <class T>
class UnroundedOutput {
 public:
  using Real = Computed<T>;

  UnroundedOutput(const Call<Real>& call, TensorView<const T> out) {
    if constexpr (std::is_same_v<T, Real>) {
      rows_ = rows_of(out);
    } else {
      again_ = Tensor<Real>::uninitialized(out.shape());
      rows_ = rows_of(TensorView<const Real>(again_));
      const Plan<Real> plan = make_plan(*call.request, Pass::kForward);
      const ForwardCall<Real> forward{call, rows_of(again_.view()), {}};
      plan.backend->forward({&forward, 1}, plan.schedule, {});
    }
  }

  const Rows& rows() const { return rows_; }

 private:
  Tensor<Real> again_;
  Rows rows_;
};

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
  const Call<Real> inputs = call_of(request, query, key, value);
  const UnroundedOutput<T> out_again(inputs, forward.out);
  const BackwardCall<Real> call{inputs, rows_of(grad_out), out_again.rows(), forward.lse,
                                gradients.targets()};
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
