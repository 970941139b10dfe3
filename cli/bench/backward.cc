// heed bench backward: the speed of the gradients of one attention call.
#include "heed/attention/backward.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <type_traits>

#include "bench/bench_verbs.h"
#include "bench/case_arguments.h"
#include "bench/case_options.h"
#include "bench/forward_case.h"
#include "bench/operands.h"
#include "bench/outcome.h"

namespace heed::cli {

namespace {

// Counts three products with head_dim (the scores, the gradients of query and key) and two with
// value_dim (the gradients of weights and value).
double backward_operations(const ForwardCase& forward) {
  return 2 * visible_pairs(forward) *
         static_cast<double>(3 * forward.head_dim + 2 * forward.value_dim);
}

template <class T>
class BackwardOperands {
 public:
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;

  explicit BackwardOperands(const ForwardCase& forward)
      : random_(0),
        query_(random_, forward.layout,
               {forward.batch, forward.num_heads, forward.q_len, forward.head_dim}),
        key_(random_, forward.layout,
             {forward.batch, forward.num_kv_heads, forward.kv_len, forward.head_dim}),
        value_(random_, forward.layout,
               {forward.batch, forward.num_kv_heads, forward.kv_len, forward.value_dim}),
        grad_out_(random_, forward.layout,
                  {forward.batch, forward.num_heads, forward.q_len, forward.value_dim}),
        options_(forward, random_),
        forward_(attention_for_backward(query_.view(), key_.view(), value_.view(), *options_)) {}

  AttentionGradients<T, Real> differentiate() const {
    return attention_backward(grad_out_.view(), query_.view(), key_.view(), value_.view(), forward_,
                              *options_);
  }
  AttentionGradients<T> differentiate_by_reference() const {
    return reference::attention_backward(grad_out_.view(), query_.view(), key_.view(),
                                         value_.view(), *options_);
  }

 private:
  TorchGenerator random_;
  Operand<T> query_;
  Operand<T> key_;
  Operand<T> value_;
  Operand<T> grad_out_;
  CaseOptions<Real> options_;
  AttentionOutput<T, Real> forward_;
};

template <class T>
ReadyCase make_gradients_ready_as(const ForwardCase& forward) {
  const auto operands = std::make_shared<BackwardOperands<T>>(forward);
  // The reference computes in this type only; check() refuses others.
  if constexpr (std::is_same_v<T, typename BackwardOperands<T>::Real>) {
    if (forward.path == "reference") {
      return make_ready([operands] { return operands->differentiate_by_reference(); });
    }
  }
  return make_ready([operands] { return operands->differentiate(); });
}

}  // namespace

ReadyCase make_backward_ready(const ForwardCase& forward) {
  ReadyCase ready = with_dtype(
      forward, [&](auto number) { return make_gradients_ready_as<decltype(number)>(forward); });
  ready.outcome.operations = backward_operations(forward);
  return ready;
}

void add_bench_backward(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("backward", "Measure the gradients of one call");
  auto arguments = std::make_shared<CaseArguments>();
  add_case_options(*verb, *arguments, {"float32", "float64", "float16", "bfloat16"});
  add_timing_options(*verb, *arguments);
  verb->footer(
      "Example:\n"
      "  heed bench backward --seq 1024,2048 --head-dim 64,128 --causal none,square\n\n"
      "What is measured is attention_backward, the allocation of its result included; the\n"
      "forward pass came before. GFLOP/s count 6 pairs head_dim for the scores and the\n"
      "gradients of query and key, and 4 pairs value_dim for those of weights and value.");
  verb->callback([arguments] { report_cases("backward", *arguments, make_backward_ready); });
}

}  // namespace heed::cli
