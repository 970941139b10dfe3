// heed bench forward: the speed of one call of attention.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "bench/bench_verbs.h"
#include "bench/forward_case.h"
#include "bench/operands.h"
#include "bench/outcome.h"
#include "bench/report.h"
#include "heed/half.h"
#include "heed/parallel.h"
#include "mask_argument.h"

namespace heed::cli {

namespace {

using Numbers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

// Each list makes as many cases as it has entries, in all combinations.
struct ForwardArguments {
  Names path{"fused"}, dtype{"float32"}, layout{"bhtd"}, causal{"none"};
  std::string window;
  Numbers batch{1}, heads{8}, kv_heads, seq{1024}, kv_seq, head_dim{64}, value_dim, threads;
  int repetitions = 10;
  bool as_json = false;
};

// Every case that `cases` holds, with each of the values in turn.
template <class T, class Set>
void multiply(std::vector<ForwardCase>& cases, const std::vector<T>& values, const Set& set) {
  std::vector<ForwardCase> product;
  for (const ForwardCase& forward : cases) {
    for (const T& value : values) {
      product.push_back(forward);
      set(product.back(), value);
    }
  }
  cases = std::move(product);
}

std::vector<ForwardCase> cases_of(const ForwardArguments& arguments) {
  std::vector<ForwardCase> cases(1);
  const auto each = [&cases](const auto& values, const auto& set) { multiply(cases, values, set); };
  // What is not given is as large as its counterpart.
  const auto each_or = [&each](const Numbers& values, const auto& set) {
    each(values.empty() ? Numbers{0} : values, set);
  };
  each(arguments.path, [](ForwardCase& c, const std::string& path) { c.path = path; });
  each(arguments.dtype, [](ForwardCase& c, const std::string& dtype) { c.dtype = dtype; });
  each(arguments.layout, [](ForwardCase& c, const std::string& layout) { c.layout = layout; });
  each(arguments.threads, [](ForwardCase& c, std::int64_t n) { c.threads = static_cast<int>(n); });
  each(arguments.causal, [](ForwardCase& c, const std::string& causal) {
    if (causal != "none") c.causal = causal;
  });
  each(arguments.batch, [](ForwardCase& c, std::int64_t n) { c.batch = n; });
  each(arguments.heads, [](ForwardCase& c, std::int64_t n) { c.num_heads = n; });
  each_or(arguments.kv_heads,
          [](ForwardCase& c, std::int64_t n) { c.num_kv_heads = n == 0 ? c.num_heads : n; });
  each(arguments.head_dim, [](ForwardCase& c, std::int64_t n) { c.head_dim = n; });
  each_or(arguments.value_dim,
          [](ForwardCase& c, std::int64_t n) { c.value_dim = n == 0 ? c.head_dim : n; });
  each(arguments.seq, [](ForwardCase& c, std::int64_t n) { c.q_len = n; });
  each_or(arguments.kv_seq,
          [](ForwardCase& c, std::int64_t n) { c.kv_len = n == 0 ? c.q_len : n; });
  for (ForwardCase& forward : cases) forward.window = arguments.window;
  return cases;
}

template <class T>
Outcome measure_as(const ForwardCase& forward, int repetitions, Progress& progress) {
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

Outcome measure_case(const ForwardCase& forward, int repetitions, Progress& progress) {
  if (forward.dtype == "float64") {
    Outcome outcome = measure_as<double>(forward, repetitions, progress);
    outcome.peak_factor = 0.5;
    return outcome;
  }
  if (forward.dtype == "float16") return measure_as<Float16>(forward, repetitions, progress);
  if (forward.dtype == "bfloat16") return measure_as<BFloat16>(forward, repetitions, progress);
  return measure_as<float>(forward, repetitions, progress);
}

void run_forward(ForwardArguments arguments) {
  if (arguments.threads.empty()) arguments.threads = {num_threads()};
  const std::vector<ForwardCase> cases = cases_of(arguments);
  for (const ForwardCase& forward : cases) check(forward);
  std::vector<Outcome> outcomes;
  {
    Progress progress(static_cast<int>(cases.size()));
    for (const ForwardCase& forward : cases) {
      outcomes.push_back(measure_case(forward, arguments.repetitions, progress));
    }
  }
  const auto report = to_json(outcomes);
  std::cout << (arguments.as_json ? report.dump() + '\n' : to_table(report));
}

void add_names(CLI::App& verb, const std::string& option, Names& names, const Names& allowed,
               const std::string& help) {
  std::string type;
  for (const std::string& name : allowed) type += (type.empty() ? "" : "|") + name;
  verb.add_option(option, names, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(allowed).description(""))
      ->type_name(type);
}

void add_numbers(CLI::App& verb, const std::string& option, Numbers& numbers, std::int64_t most,
                 const std::string& help) {
  verb.add_option(option, numbers, help)
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(std::int64_t{1}, most).description(""))
      ->type_name("N");
}

}  // namespace

void add_bench_forward(CLI::App& bench) {
  CLI::App* verb = bench.add_subcommand("forward", "Measure one call of attention");
  auto arguments = std::make_shared<ForwardArguments>();
  ForwardArguments& a = *arguments;
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  add_names(*verb, "--path", a.path, {"fused", "reference"},
            "The fused kernels, or the plain loops they are tested against; fused");
  add_numbers(*verb, "--batch", a.batch, kMost, "1");
  add_numbers(*verb, "--heads", a.heads, kMost, "Heads of the query; 8");
  add_numbers(*verb, "--kv-heads", a.kv_heads, kMost, "Heads of key and value; as the query");
  add_numbers(*verb, "--seq", a.seq, kMost, "How many queries; 1024");
  add_numbers(*verb, "--kv-seq", a.kv_seq, kMost, "How many keys; as many as queries");
  add_numbers(*verb, "--head-dim", a.head_dim, 65536, "64");
  add_numbers(*verb, "--value-dim", a.value_dim, 65536, "As head_dim");
  Names causal = kAlignmentNames;
  causal.insert(causal.begin(), "none");
  add_names(*verb, "--causal", a.causal, causal, "A query sees no later key; none");
  verb->add_option("--window", a.window,
                   "A query sees so many keys on each side besides its own position; a side may "
                   "be 'unbounded'")
      ->type_name("LEFT,RIGHT");
  add_names(*verb, "--dtype", a.dtype, {"float32", "float64", "float16", "bfloat16"}, "float32");
  add_names(*verb, "--layout", a.layout, {"bhtd", "bthd"},
            "How memory lies: [batch, heads, length, dim] or [batch, length, heads, dim]; bhtd");
  add_numbers(*verb, "--threads", a.threads, 1024, "All the machine has, if not given");
  verb->add_option("--repeat", a.repetitions,
                   "How often each case is measured; one repetition is as many calls as fill 2 ms")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N")
      ->capture_default_str();
  verb->add_flag("--json", a.as_json, "Print one JSON object instead of the table");
  verb->footer(
      "Example:\n"
      "  heed bench forward --seq 128,512,2048 --head-dim 64,128 --causal none,square\n\n"
      "Options that take a list measure every combination. GFLOP/s count 2 pairs head_dim\n"
      "for the scores and 2 pairs value_dim for the output, over the pairs of query and\n"
      "key that the mask lets through. 'extra bytes' is what one call had allocated at\n"
      "most beyond its output, counted in operator new.");
  verb->callback([arguments] { run_forward(*arguments); });
}

}  // namespace heed::cli
