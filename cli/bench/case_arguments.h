// The options that name the attention calls to measure.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/forward_case.h"
#include "bench/outcome.h"

namespace heed::cli {

using Numbers = std::vector<std::int64_t>;
using Names = std::vector<std::string>;

// The cases to measure are all combinations of the entries of the lists.
struct CaseArguments {
  Names path{"fused"}, dtype{"float32"}, layout{"bhtd"}, causal{"none"}, with{"none"};
  std::string mask;
  Numbers batch{1}, heads{8}, kv_heads, seq{1024}, kv_seq, head_dim{64}, value_dim, threads;
  int repetitions = 10;
  std::string in_turn;  // the name of one of the lists, or empty
  bool as_json = false;
};

// Add options that take lists of allowed names, or of numbers from 1 to `most`.
void add_names(CLI::App& verb, const std::string& option, Names& names, const Names& allowed,
               const std::string& help);
void add_numbers(CLI::App& verb, const std::string& option, Numbers& numbers, std::int64_t most,
                 const std::string& help);

// Adds an option for each list. `dtypes` are the types that the verb supports.
void add_case_options(CLI::App& verb, CaseArguments& arguments, const Names& dtypes);
// Adds --repeat, --in-turn and --json.
void add_timing_options(CLI::App& verb, CaseArguments& arguments);

// Returns the cases. Throws UsageError for one that attention would refuse.
std::vector<ForwardCase> cases_of(CaseArguments arguments);

// Return the call of a case and its number of operations.
ReadyCase make_forward_ready(const ForwardCase& forward);
ReadyCase make_backward_ready(const ForwardCase& forward);

// Measures every case and prints the report of `verb`. Throws what cases_of() throws.
void report_cases(const char* verb, const CaseArguments& arguments,
                  ReadyCase (*make_ready)(const ForwardCase&));

}  // namespace heed::cli
