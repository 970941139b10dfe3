// Attention over divided tokens: checks the arguments on all ranks, sums, and writes the results.
#include "heed/distributed/attention.h"

#include "distributed/forward.h"
#include "distributed/own_part.h"
#include "distributed/shared_problem.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

template <class Q, class K>
AttentionOutput<Q, Computed<Q>> compute(const Ranks& ranks, TensorView<const Q> query,
                                        TensorView<const K> key, TensorView<const K> value,
                                        const BasicAttentionOptions<Computed<Q>>& options,
                                        bool wants_lse) {
  using Real = Computed<Q>;
  const UncancelledMessages messages;
  const SharedProblem<Real> problem =
      share_problem("distributed::attention", ranks, query, key, value, options, messages.outer());
  AttentionOutput<Q, Real> result;
  const Shape rows{query.extent(0), query.extent(1), query.extent(2)};
  run_on_all(ranks.communicator, [&] {
    result.out = Tensor<Q>::uninitialized({rows[0], rows[1], rows[2], value.extent(3)});
    if (!wants_lse) return;
    result.lse = Tensor<Real>::uninitialized(rows);
    result.lse_low = Tensor<Real>(rows);
    if (reads_out_low<Q>(problem.request)) {
      result.out_low = Tensor<Q>::uninitialized(result.out.shape());
    }
  });
  Results<Real> results{rows_of(result.out.view()), result.lse, result.lse_low};
  if (wants_lse && reads_out_low<Q>(problem.request)) {
    results.out_low = rows_of(result.out_low.view());
  }
  forward<Real>(problem, results);
  return result;
}

}  // namespace

Tensor<float> attention(const Ranks& ranks, FloatView query, FloatView key, FloatView value,
                        const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, false).out;
}

Tensor<Float16> attention(const Ranks& ranks, Float16View query, Float16View key, Float16View value,
                          const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, false).out;
}

Tensor<BFloat16> attention(const Ranks& ranks, BFloat16View query, BFloat16View key,
                           BFloat16View value, const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, false).out;
}

Tensor<float> attention(const Ranks& ranks, FloatView query, Float16View key, Float16View value,
                        const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, false).out;
}

Tensor<float> attention(const Ranks& ranks, FloatView query, BFloat16View key, BFloat16View value,
                        const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, false).out;
}

Tensor<double> attention(const Ranks& ranks, DoubleView query, DoubleView key, DoubleView value,
                         const AttentionOptions64& options) {
  return compute(ranks, query, key, value, options, false).out;
}

AttentionOutput<float> attention_with_lse(const Ranks& ranks, FloatView query, FloatView key,
                                          FloatView value, const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, true);
}

AttentionOutput<Float16, float> attention_with_lse(const Ranks& ranks, Float16View query,
                                                   Float16View key, Float16View value,
                                                   const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, true);
}

AttentionOutput<BFloat16, float> attention_with_lse(const Ranks& ranks, BFloat16View query,
                                                    BFloat16View key, BFloat16View value,
                                                    const AttentionOptions& options) {
  return compute(ranks, query, key, value, options, true);
}

AttentionOutput<double> attention_with_lse(const Ranks& ranks, DoubleView query, DoubleView key,
                                           DoubleView value, const AttentionOptions64& options) {
  return compute(ranks, query, key, value, options, true);
}

}}}  // namespace heed::v0::distributed
