// Attention of tensors: check, plan, run.
#include "heed/attention.h"

#include "attention/calls.h"
#include "attention/plan.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

template <class Q, class K>
AttentionOutput<Q, Computed<Q>> compute(TensorView<const Q> query, TensorView<const K> key,
                                        TensorView<const K> value,
                                        const BasicAttentionOptions<Computed<Q>>& options,
                                        bool wants_lse) {
  using Real = Computed<Q>;
  constexpr const char* kFunction = "attention";
  const AttentionShapes shapes = check_shapes(kFunction, query, key, value);
  const Request<Real> request = check_request(kFunction, shapes, options);
  const Plan<Real> plan = make_plan(request, Pass::kForward);
  AttentionOutput<Q, Real> result;
  result.out =
      Tensor<Q>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  if (wants_lse) {
    result.lse = Tensor<Real>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len});
    result.lse_low = Tensor<Real>(result.lse.shape());
    if (reads_out_low<Q>(request)) result.out_low = Tensor<Q>::uninitialized(result.out.shape());
  }
  const ForwardCall<Real> call{call_of(request, query, key, value), rows_of(result.out.view()),
                               result.lse, result.lse_low, rows_or_none(result.out_low.view())};
  plan.backend->forward({&call, 1}, plan.schedule, {});
  return result;
}

}  // namespace

Tensor<float> attention(FloatView query, FloatView key, FloatView value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, false).out;
}

Tensor<Float16> attention(Float16View query, Float16View key, Float16View value,
                          const AttentionOptions& options) {
  return compute(query, key, value, options, false).out;
}

Tensor<BFloat16> attention(BFloat16View query, BFloat16View key, BFloat16View value,
                           const AttentionOptions& options) {
  return compute(query, key, value, options, false).out;
}

Tensor<float> attention(FloatView query, Float16View key, Float16View value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, false).out;
}

Tensor<float> attention(FloatView query, BFloat16View key, BFloat16View value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, false).out;
}

Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options) {
  return compute(query, key, value, options, false).out;
}

AttentionOutput<float> attention_with_lse(FloatView query, FloatView key, FloatView value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, true);
}

AttentionOutput<Float16, float> attention_with_lse(Float16View query, Float16View key,
                                                   Float16View value,
                                                   const AttentionOptions& options) {
  return compute(query, key, value, options, true);
}

AttentionOutput<BFloat16, float> attention_with_lse(BFloat16View query, BFloat16View key,
                                                    BFloat16View value,
                                                    const AttentionOptions& options) {
  return compute(query, key, value, options, true);
}

AttentionOutput<float> attention_with_lse(FloatView query, Float16View key, Float16View value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, true);
}

AttentionOutput<float> attention_with_lse(FloatView query, BFloat16View key, BFloat16View value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, true);
}

AttentionOutput<double> attention_with_lse(DoubleView query, DoubleView key, DoubleView value,
                                           const AttentionOptions64& options) {
  return compute(query, key, value, options, true);
}

}  // namespace heed::inline v0
