#include "bench/case_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <utility>

#include "arguments.h"
#include "bench/case_options.h"
#include "bench/report.h"
#include "heed/core/parallel.h"
#include "mask_argument.h"
#include "verbs.h"

namespace heed::cli {

namespace {

// Replaces `cases` by every combination of a case and a value.
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

// An option whose values --in-turn can alternate.
struct TurnOption {
  const char* name;
  Names CaseArguments::*values;
  std::string ForwardCase::*value;
};
constexpr TurnOption kTurnOptions[] = {
    {"path", &CaseArguments::path, &ForwardCase::path},
    {"dtype", &CaseArguments::dtype, &ForwardCase::dtype},
    {"layout", &CaseArguments::layout, &ForwardCase::layout},
    {"causal", &CaseArguments::causal, &ForwardCase::causal},
    {"with", &CaseArguments::with, &ForwardCase::with},
};

// Cases that are measured alternately.
using Turns = std::vector<ForwardCase>;

// Groups the cases that differ only in the value of the option.
std::vector<Turns> turns_of(const TurnOption& option, const std::vector<ForwardCase>& cases) {
  std::vector<Turns> all;
  for (const ForwardCase& one : cases) {
    const auto are_alike = [&](const Turns& turns) {
      ForwardCase like_one = turns.front();
      like_one.*option.value = one.*option.value;
      return like_one == one;
    };
    const auto turns = std::find_if(all.begin(), all.end(), are_alike);
    if (turns == all.end()) {
      all.push_back({one});
    } else {
      turns->push_back(one);
    }
  }
  return all;
}

// Returns each case alone, unless --in-turn names an option.
std::vector<Turns> turns_of(const CaseArguments& arguments, const std::vector<ForwardCase>& cases) {
  for (const TurnOption& option : kTurnOptions) {
    if (arguments.in_turn != option.name) continue;
    if ((arguments.*option.values).size() == 1) {
      throw UsageError(fmt::format(
          "--in-turn {0}: --{0} has one value, '{1}', expected several that can take turns",
          option.name, (arguments.*option.values).front()));
    }
    return turns_of(option, cases);
  }
  std::vector<Turns> all;
  all.reserve(cases.size());
  for (const ForwardCase& one : cases) all.push_back({one});
  return all;
}

}  // namespace

std::vector<ForwardCase> cases_of(CaseArguments arguments) {
  if (arguments.threads.empty()) arguments.threads = {num_threads()};
  std::vector<ForwardCase> cases(1);
  const auto each = [&cases](const auto& values, const auto& set) { multiply(cases, values, set); };
  // An option that is not given takes the value of its counterpart, which 0 stands for here.
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
  each(arguments.with, [](ForwardCase& c, const std::string& with) { c.with = with; });
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
  for (ForwardCase& forward : cases) {
    forward.mask = arguments.mask;
    check(forward);
  }
  return cases;
}

void add_names(CLI::App& verb, const std::string& option, Names& names, const Names& allowed,
               const std::string& help) {
  // Names that do not fit on a line are listed in the help text instead.
  constexpr std::size_t kMostLetters = 70;
  const std::string type = fmt::format("{}", fmt::join(allowed, "|"));
  const bool fits = type.size() <= kMostLetters;
  const std::string text =
      fits ? help : fmt::format("{}. Names: {}", help, fmt::join(allowed, ", "));
  add_list(verb, option, names, one_of(allowed), text)->type_name(fits ? type : "NAME");
}

void add_numbers(CLI::App& verb, const std::string& option, Numbers& numbers, std::int64_t most,
                 const std::string& help) {
  add_list(verb, option, numbers, CLI::Range(std::int64_t{1}, most), help);
}

void add_case_options(CLI::App& verb, CaseArguments& arguments, const Names& dtypes) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  add_names(verb, "--path", arguments.path, {"fused", "reference"},
            "The fused kernels, or the plain loops they are tested against; fused");
  add_numbers(verb, "--batch", arguments.batch, kMost, "1");
  add_numbers(verb, "--heads", arguments.heads, kMost, "Heads of the query; 8");
  add_numbers(verb, "--kv-heads", arguments.kv_heads, kMost,
              "Heads of key and value; as the query");
  add_numbers(verb, "--seq", arguments.seq, kMost, "How many queries; 1024");
  add_numbers(verb, "--kv-seq", arguments.kv_seq, kMost, "How many keys; as many as queries");
  add_numbers(verb, "--head-dim", arguments.head_dim, 65536, "64");
  add_numbers(verb, "--value-dim", arguments.value_dim, 65536, "As head_dim");
  add_names(verb, "--causal", arguments.causal, kCausalNames,
            "A query sees no later key, aligned as masks are; none");
  add_option(verb, "--mask", arguments.mask,
             "A mask by name, which has to allow a key too: \"bigbird(64, 3, 2, 3, 0)\"")
      ->type_name("MASK");
  add_names(verb, "--with", arguments.with, kCaseOptionNames,
            "An option of attention beside the mask; none");
  add_names(verb, "--dtype", arguments.dtype, dtypes, "float32");
  add_names(verb, "--layout", arguments.layout, {"bhtd", "bthd"},
            "How memory lies: [batch, heads, length, dim] or [batch, length, heads, dim]; bhtd");
  add_numbers(verb, "--threads", arguments.threads, 1024, "All the machine has, if not given");
}

void add_timing_options(CLI::App& verb, CaseArguments& arguments) {
  add_option(verb, "--repeat", arguments.repetitions,
             "How often each case is measured; one repetition is as many calls as fill 2 ms")
      ->check(CLI::Range(1, 1000000).description(""))
      ->type_name("N")
      ->capture_default_str();
  Names in_turn;
  for (const TurnOption& option : kTurnOptions) in_turn.emplace_back(option.name);
  add_option(verb, "--in-turn", arguments.in_turn,
             "Measure in turn what differs in this option alone, so that what disturbs one case "
             "disturbs all: 'of first' is how many times as fast as the first it is")
      ->check(one_of(in_turn))
      ->type_name(fmt::format("{}", fmt::join(in_turn, "|")));
  add_report_options(verb, arguments.as_json);
}

void report_cases(const char* verb, const CaseArguments& arguments,
                  ReadyCase (*make_ready)(const ForwardCase&)) {
  const std::vector<Turns> all_turns = turns_of(arguments, cases_of(arguments));
  std::vector<Outcome> outcomes;
  {
    Progress progress(static_cast<int>(all_turns.size()));
    for (const Turns& turns : all_turns) {
      std::vector<ReadyCase> ready;
      for (const ForwardCase& one : turns) {
        ready.push_back(make_ready(one));
        ready.back().outcome.description = describe(one);
        ready.back().outcome.peak_factor = peak_factor(one);
      }
      const Sampling sampling{
          .threads = turns.front().threads, .warmups = 2, .repetitions = arguments.repetitions};
      measure(sampling, ready, progress);
      for (ReadyCase& one : ready) outcomes.push_back(std::move(one.outcome));
    }
  }
  print_report(arguments.as_json, verb, to_json(outcomes),
               [](const nlohmann::ordered_json& report) { return to_table(report); });
}

}  // namespace heed::cli
