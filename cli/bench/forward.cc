// heed bench forward: the speed of one call of attention.
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
Outcome measure_forward_as(const ForwardCase& forward, int repetitions, Progress& progress) {
  const Sampling sampling{.threads = forward.threads, .warmups = 2, .repetitions = repetitions};
  Operands<T> operands(forward);
  Outcome outcome;
  outcome.description = describe(forward);
  outcome.operations = operations(forward);
  if (forward.path == "fused") {
    measure(
        sampling, [&] { return operands.attend(); }, progress, outcome);
    return outcome;
  }
  // check() lets no other type come here.
  if constexpr (std::is_same_v<T, typename Operands<T>::Real>) {
    const auto call = [&] { return operands.attend_by_reference(reference::Keep::kNothing).out; };
    measure(sampling, call, progress, outcome);
  }
  return outcome;
}

Outcome measure_forward(const ForwardCase& forward, int repetitions, Progress& progress) {
  Outcome outcome = with_dtype(forward, [&](auto number) {
    return measure_forward_as<decltype(number)>(forward, repetitions, progress);
  });
  outcome.peak_factor = peak_factor(forward);
  return outcome;
}

}  // namespace

void add_bench_forward(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("forward", "Measure one call of attention");
  auto arguments = std::make_shared<CaseArguments>();
  add_case_options(*verb, *arguments, {"float32", "float64", "float16", "bfloat16"});
  verb->footer(
      "Example:\n"
      "  heed bench forward --seq 128,512,2048 --head-dim 64,128 --causal none,square\n\n"
      "Options that take a list measure every combination. GFLOP/s count 2 pairs head_dim\n"
      "for the scores and 2 pairs value_dim for the output, over the pairs of query and\n"
      "key that the mask lets through. 'extra bytes' is what one call had allocated at\n"
      "most beyond its output, counted in operator new.");
  verb->callback([arguments] {
    report_cases("forward", *arguments, [&](const ForwardCase& forward, Progress& progress) {
      return measure_forward(forward, arguments->repetitions, progress);
    });
  });
}

}  // namespace heed::cli
