// Attention of tensors: check, decide, execute.
#include "heed/attention.h"

#include <utility>

#include "attention/call.h"
#include "heed/reference.h"

namespace heed::inline v0 {

namespace {

template <class T>
AttentionOutput<T, float> compute(TensorView<const T> query, TensorView<const T> key,
                                  TensorView<const T> value, const AttentionOptions& options,
                                  bool wants_lse) {
  constexpr const char* kFunction = "attention";
  const AttentionShapes shapes = check_shapes(kFunction, query, key, value);
  const Call call = decide(kFunction, shapes, options);
  AttentionOutput<T, float> result;
  result.out =
      Tensor<T>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len, shapes.value_dim});
  if (wants_lse) {
    result.lse = Tensor<float>::uninitialized({shapes.batch, shapes.num_heads, shapes.q_len});
  }
  execute<T>(call, query, key, value, {.out = result.out, .lse = result.lse});
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

Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options) {
  return reference::attention(query, key, value, options).out;
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

AttentionOutput<double> attention_with_lse(DoubleView query, DoubleView key, DoubleView value,
                                           const AttentionOptions64& options) {
  auto result = reference::attention(query, key, value, options);
  return {std::move(result.out), std::move(result.lse)};
}

}  // namespace heed::inline v0
