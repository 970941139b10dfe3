// attention_backward(): check, plan, run.
#include "heed/attention/backward.h"

#include "attention/calls/run.h"
#include "core/float_environment.h"

namespace heed { inline namespace v0 {

namespace {

constexpr const char* kFunction = "attention_backward";

template <class T>
AttentionGradients<T, Computed<T>> compute(const BackwardTensors<T>& in,
                                           const BasicAttentionOptions<Computed<T>>& options) {
  const FloatEnvironment environment;
  const AttentionShapes shapes = check_shapes(kFunction, in.query, in.key, in.value);
  const Request<Computed<T>> request = check_request(kFunction, shapes, options);
  return run_backward<T>(kFunction, request, *prepare(request, Pass::kBackward), in, {});
}

}  // namespace

AttentionGradients<float> attention_backward(FloatView grad_out, FloatView query, FloatView key,
                                             FloatView value,
                                             const AttentionOutputView<float>& forward,
                                             const AttentionOptions& options) {
  return compute<float>({grad_out, query, key, value, forward}, options);
}

AttentionGradients<Float16, float> attention_backward(
    Float16View grad_out, Float16View query, Float16View key, Float16View value,
    const AttentionOutputView<Float16, float>& forward, const AttentionOptions& options) {
  return compute<Float16>({grad_out, query, key, value, forward}, options);
}

AttentionGradients<BFloat16, float> attention_backward(
    BFloat16View grad_out, BFloat16View query, BFloat16View key, BFloat16View value,
    const AttentionOutputView<BFloat16, float>& forward, const AttentionOptions& options) {
  return compute<BFloat16>({grad_out, query, key, value, forward}, options);
}

AttentionGradients<double> attention_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                              DoubleView value,
                                              const AttentionOutputView<double>& forward,
                                              const AttentionOptions64& options) {
  return compute<double>({grad_out, query, key, value, forward}, options);
}

}}  // namespace heed::v0
