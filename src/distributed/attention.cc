// Attention over divided tokens and its gradients: checks the arguments on all ranks, sums, and
// writes the results.
#include "heed/distributed/attention.h"

#include "attention/calls/run.h"
#include "core/float_environment.h"
#include "distributed/agreement.h"
#include "distributed/passes.h"
#include "distributed/shared_problem.h"
#include "heed/core/convert.h"

namespace heed { inline namespace v0 { namespace distributed {

namespace {

template <class Q, class K>
AttentionOutput<Q, Computed<Q>> compute(const Ranks& ranks, TensorView<const Q> query,
                                        TensorView<const K> key, TensorView<const K> value,
                                        const BasicAttentionOptions<Computed<Q>>& options,
                                        bool wants_lse) {
  const FloatEnvironment environment;
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

namespace {

constexpr const char* kFunction = "distributed::attention_backward";

// True if the view was given; that of a rank without tokens is given too.
template <class T>
bool is_given(const TensorView<const T>& view) {
  return view.shape() != Shape{0};
}

template <class T>
void check_outputs(const BackwardTensors<T>& in) {
  const Shape rows{in.query.extent(0), in.query.extent(1), in.query.extent(2)};
  const Shape out{rows[0], rows[1], rows[2], in.value.extent(3)};
  check_tensor(kFunction, "grad_out", in.grad_out, out);
  check_tensor(kFunction, "forward.out", in.forward.out, out);
  check_tensor(kFunction, "forward.lse", in.forward.lse, rows);
  if (!in.forward.lse_low.empty()) {
    check_tensor(kFunction, "forward.lse_low", in.forward.lse_low, rows);
  }
  if (is_given(in.forward.out_low)) {
    check_tensor(kFunction, "forward.out_low", in.forward.out_low, out);
  }
}

// The output of half precision together with its rounding error: Σ grad_out · out of a rounded
// output would cost the gradients most of their digits. All ranks call it.
template <class T>
Tensor<Computed<T>> exact_out(const SharedProblem<Computed<T>>& problem,
                              const AttentionOutputView<T, Computed<T>>& given) {
  using Real = Computed<T>;
  const bool has_low = reads_out_low<T>(problem.request) && is_given(given.out_low);
  check_alike(kFunction, problem.ranks, has_low ? "out_low" : "no out_low");
  Tensor<Real> out;
  run_on_all(problem.ranks, [&] {
    out = has_low ? converted<Real>(given.out) : Tensor<Real>::uninitialized(given.out.shape());
  });
  if (!has_low) {
    forward<Real>(problem, {rows_of(out.view()), {}, {}});
    return out;
  }
  Real* number = out.data();
  for_each_element(given.out_low,
                   [&number](const T& rest) { *number++ += static_cast<Real>(rest); });
  return out;
}

template <class T>
AttentionGradients<T, Computed<T>> compute(const Ranks& ranks, const BackwardTensors<T>& in,
                                           const BasicAttentionOptions<Computed<T>>& options) {
  const FloatEnvironment environment;
  using Real = Computed<T>;
  const UncancelledMessages messages;
  const SharedProblem<Real> problem =
      share_problem(kFunction, ranks, in.query, in.key, in.value, options, messages.outer());
  run_on_all(ranks.communicator, [&] { check_outputs(in); });
  BackwardInputs<Real> inputs{rows_of(in.grad_out), rows_of(in.forward.out), in.forward.lse,
                              in.forward.lse_low};
  Tensor<Real> out;
  if constexpr (!std::is_same_v<T, Real>) {
    out = exact_out<T>(problem, in.forward);
    inputs.out = rows_of(TensorView<const Real>(out));
  }
  AttentionGradients<Real> sums = backward(problem, inputs);
  if constexpr (std::is_same_v<T, Real>) {
    return sums;
  } else {
    return {static_cast<OptionGradients<Real>&&>(sums), converted<T>(sums.query.view()),
            converted<T>(sums.key.view()), converted<T>(sums.value.view())};
  }
}

}  // namespace

AttentionGradients<float> attention_backward(const Ranks& ranks, FloatView grad_out,
                                             FloatView query, FloatView key, FloatView value,
                                             const AttentionOutputView<float>& forward,
                                             const AttentionOptions& options) {
  return compute<float>(ranks, {grad_out, query, key, value, forward}, options);
}

AttentionGradients<Float16, float> attention_backward(
    const Ranks& ranks, Float16View grad_out, Float16View query, Float16View key, Float16View value,
    const AttentionOutputView<Float16, float>& forward, const AttentionOptions& options) {
  return compute<Float16>(ranks, {grad_out, query, key, value, forward}, options);
}

AttentionGradients<BFloat16, float> attention_backward(
    const Ranks& ranks, BFloat16View grad_out, BFloat16View query, BFloat16View key,
    BFloat16View value, const AttentionOutputView<BFloat16, float>& forward,
    const AttentionOptions& options) {
  return compute<BFloat16>(ranks, {grad_out, query, key, value, forward}, options);
}

AttentionGradients<double> attention_backward(const Ranks& ranks, DoubleView grad_out,
                                              DoubleView query, DoubleView key, DoubleView value,
                                              const AttentionOutputView<double>& forward,
                                              const AttentionOptions64& options) {
  return compute<double>(ranks, {grad_out, query, key, value, forward}, options);
}

}}}  // namespace heed::v0::distributed
