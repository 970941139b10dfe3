// heed bench forward: the speed of one attention call.
#include <CLI/CLI.hpp>
#include <memory>
#include <type_traits>

#include "bench/bench_verbs.h"
#include "bench/case_arguments.h"
#include "bench/forward_case.h"
#include "bench/operands.h"
#include "bench/outcome.h"

namespace heed::cli {

namespace {

template <class T>
ReadyCase make_ready_as(const ForwardCase& forward) {
  const auto operands = std::make_shared<Operands<T>>(forward);
  // The reference computes in this type only; check() refuses others.
  if constexpr (std::is_same_v<T, typename Operands<T>::Real>) {
    if (forward.path == "reference") {
      return make_ready(
          [operands] { return operands->attend_by_reference(reference::Keep::kNothing).out; });
    }
  }
  return make_ready([operands] { return operands->attend(); });
}

}  // namespace

ReadyCase make_forward_ready(const ForwardCase& forward) {
  ReadyCase ready =
      with_dtype(forward, [&](auto number) { return make_ready_as<decltype(number)>(forward); });
  ready.outcome.operations = operations(forward);
  return ready;
}

void add_bench_forward(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("forward", "Measure one call of attention");
  auto arguments = std::make_shared<CaseArguments>();
  add_case_options(*verb, *arguments, {"float32", "float64", "float16", "bfloat16"});
  add_timing_options(*verb, *arguments);
  verb->footer(
      "Example:\n"
      "  heed bench forward --seq 128,512,2048 --head-dim 64,128 --causal none,square\n\n"
      "Options that take a list measure every combination. GFLOP/s count 2 pairs head_dim\n"
      "for the scores and 2 pairs value_dim for the output, over the pairs of query and\n"
      "key that the mask lets through.");
  verb->callback([arguments] { report_cases("forward", *arguments, make_forward_ready); });
}

}  // namespace heed::cli
