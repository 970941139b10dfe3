// Packed sequences: one job for each, on the schedule of the largest.
#include "heed/packed.h"

#include <utility>
#include <vector>

#include "attention/fused/forward.h"
#include "attention/packed_problem.h"
#include "heed/parallel.h"

namespace heed::inline v0 {

namespace {

template <class T>
fused::Job job_of(const PackedSequence<T>& sequence, const AttentionBuffers<T>& buffers) {
  return {&sequence.call.terms,    rows_of(sequence.query), rows_of(sequence.key),
          rows_of(sequence.value), rows_of(buffers.out),    buffers.lse,
          sequence.batches()};
}

template <class T>
void compute_by_reference(const PackedSequence<T>& sequence, const AttentionBuffers<T>& buffers) {
  const auto entry = [](auto view) { return view.slice(0, 0, 1); };
  execute_by_reference<T>(sequence.call.terms, sequence.batches(), sequence.query, sequence.key,
                          sequence.value, {entry(buffers.out), entry(buffers.lse)});
}

template <class T>
AttentionOutput<T, float> compute(TensorView<const T> query, TensorView<const T> key,
                                  TensorView<const T> value, const PackedSequences& where,
                                  const AttentionOptions& options) {
  const auto sequences = check_packed("attention_packed", query, key, value, where, options);
  auto out = Tensor<T>::uninitialized({query.extent(0), query.extent(1), value.extent(2)});
  auto lse = Tensor<float>::uninitialized({query.extent(1), query.extent(0)});
  std::vector<fused::Job> jobs;
  jobs.reserve(sequences.size());
  for (const PackedSequence<T>& one : sequences) {
    const AttentionBuffers<T> buffers{one.of_queries(out.view()), one.of_lse(lse.view())};
    if (one.call.is_fused()) {
      jobs.push_back(job_of(one, buffers));
    } else {
      compute_by_reference(one, buffers);
    }
  }
  if (!jobs.empty()) {
    const LargestProblem largest = largest_of(sequences);
    fused::forward(jobs, fused::make_schedule(*sequences.front().call.schedule.table, largest.terms,
                                              largest.shapes, num_threads(), true));
  }
  return {std::move(out), std::move(lse)};
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

}  // namespace heed::inline v0
