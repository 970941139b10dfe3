// Packed sequences: a call for each sequence, prepared for the largest.
#include "heed/attention/packed.h"

#include <utility>
#include <vector>

#include "attention/calls/packed_problem.h"
#include "core/float_environment.h"

namespace heed { inline namespace v0 {

namespace {

template <class T>
AttentionOutput<T, float> compute(TensorView<const T> query, TensorView<const T> key,
                                  TensorView<const T> value, const PackedSequences& where,
                                  const AttentionOptions& options) {
  const FloatEnvironment environment;
  const auto sequences = check_packed("attention_packed", query, key, value, where, options);
  auto out = Tensor<T>::uninitialized({query.extent(0), query.extent(1), value.extent(2)});
  auto lse = Tensor<float>::uninitialized({query.extent(1), query.extent(0)});
  Tensor<float> lse_low(lse.shape());
  std::vector<ForwardCall<float>> calls;
  calls.reserve(sequences.size());
  for (const PackedSequence<T>& one : sequences) {
    calls.push_back({call_of(one.request, one.query, one.key, one.value),
                     rows_of(one.of_queries(out.view())), one.of_lse(lse.view()),
                     one.of_lse(lse_low.view())});
    calls.back().batches = one.batches();
  }
  if (!calls.empty()) {
    const auto pass = prepare_packed(sequences, Pass::kForward);
    pass->forward(calls);
  }
  return {std::move(out), std::move(lse), std::move(lse_low)};
}

}  // namespace

Tensor<float> attention_packed(FloatView query, FloatView key, FloatView value,
                               const PackedSequences& sequences, const AttentionOptions& options) {
  return compute(query, key, value, sequences, options).out;
}

Tensor<Float16> attention_packed(Float16View query, Float16View key, Float16View value,
                                 const PackedSequences& sequences,
                                 const AttentionOptions& options) {
  return compute(query, key, value, sequences, options).out;
}

Tensor<BFloat16> attention_packed(BFloat16View query, BFloat16View key, BFloat16View value,
                                  const PackedSequences& sequences,
                                  const AttentionOptions& options) {
  return compute(query, key, value, sequences, options).out;
}

AttentionOutput<float> attention_packed_with_lse(FloatView query, FloatView key, FloatView value,
                                                 const PackedSequences& sequences,
                                                 const AttentionOptions& options) {
  return compute(query, key, value, sequences, options);
}

}}  // namespace heed::v0
