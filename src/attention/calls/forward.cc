// attention() of tensors: check, plan, run.
#include "attention/plan/plan.h"
#include "attention/request/call.h"
#include "core/float_environment.h"
#include "heed/attention.h"
#include "heed/attention/reference.h"

namespace heed { inline namespace v0 {

namespace {

// The results that are wanted; each value includes those before it.
enum class Wanted { kOut, kLse, kKept };

template <class Q, class K>
AttentionOutput<Q, Computed<Q>> compute(TensorView<const Q> query, TensorView<const K> key,
                                        TensorView<const K> value,
                                        const BasicAttentionOptions<Computed<Q>>& options,
                                        Wanted wanted) {
  const FloatEnvironment environment;
  using Real = Computed<Q>;
  constexpr const char* kFunction = "attention";
  const AttentionShapes shapes = check_shapes(kFunction, query, key, value);
  const Request<Real> request = check_request(kFunction, shapes, options);
  const PreparedPass<Real> pass = prepare(request, Pass::kForward);
  AttentionOutput<Q, Real> result;
  result.out =
      Tensor<Q>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  if (wanted != Wanted::kOut) {
    result.lse = Tensor<Real>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len});
    result.lse_low = Tensor<Real>(result.lse.shape());
    if (reads_out_low<Q>(request)) result.out_low = Tensor<Q>::uninitialized(result.out.shape());
  }
  ForwardCall<Real> call{call_of(request, query, key, value), rows_of(result.out.view()),
                         result.lse, result.lse_low, rows_or_none(result.out_low.view())};
  const std::int64_t kept = wanted == Wanted::kKept ? pass->kept_size(request) : 0;
  if (kept > 0) {
    result.kept = Tensor<Real>::uninitialized({kept});
    call.kept = result.kept.data();
  }
  pass->forward({&call, 1});
  return result;
}

}  // namespace

Tensor<float> attention(FloatView query, FloatView key, FloatView value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kOut).out;
}

Tensor<Float16> attention(Float16View query, Float16View key, Float16View value,
                          const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kOut).out;
}

Tensor<BFloat16> attention(BFloat16View query, BFloat16View key, BFloat16View value,
                           const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kOut).out;
}

Tensor<float> attention(FloatView query, Float16View key, Float16View value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kOut).out;
}

Tensor<float> attention(FloatView query, BFloat16View key, BFloat16View value,
                        const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kOut).out;
}

Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options) {
  return compute(query, key, value, options, Wanted::kOut).out;
}

AttentionOutput<float> attention_with_lse(FloatView query, FloatView key, FloatView value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kLse);
}

AttentionOutput<Float16, float> attention_with_lse(Float16View query, Float16View key,
                                                   Float16View value,
                                                   const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kLse);
}

AttentionOutput<BFloat16, float> attention_with_lse(BFloat16View query, BFloat16View key,
                                                    BFloat16View value,
                                                    const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kLse);
}

AttentionOutput<float> attention_with_lse(FloatView query, Float16View key, Float16View value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kLse);
}

AttentionOutput<float> attention_with_lse(FloatView query, BFloat16View key, BFloat16View value,
                                          const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kLse);
}

AttentionOutput<double> attention_with_lse(DoubleView query, DoubleView key, DoubleView value,
                                           const AttentionOptions64& options) {
  return compute(query, key, value, options, Wanted::kLse);
}

AttentionOutput<float> attention_for_backward(FloatView query, FloatView key, FloatView value,
                                              const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kKept);
}

AttentionOutput<Float16, float> attention_for_backward(Float16View query, Float16View key,
                                                       Float16View value,
                                                       const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kKept);
}

AttentionOutput<BFloat16, float> attention_for_backward(BFloat16View query, BFloat16View key,
                                                        BFloat16View value,
                                                        const AttentionOptions& options) {
  return compute(query, key, value, options, Wanted::kKept);
}

AttentionOutput<double> attention_for_backward(DoubleView query, DoubleView key, DoubleView value,
                                               const AttentionOptions64& options) {
  return compute(query, key, value, options, Wanted::kKept);
}

}}  // namespace heed::v0
