// The options that name the attention calls to measure.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/forward_case.h"
#include "bench/outcome.h"
#include "bench/report.h"

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
  bool with_samples = false;
  ReportOptions report;
};

// Add options that take lists of allowed names, or of numbers from 1 to `most`.
void add_names(CLI::App& verb, const std::string& option, Names& names, const Names& allowed,
               const std::string& help);
void add_numbers(CLI::App& verb, const std::string& option, Numbers& numbers, std::int64_t most,
                 const std::string& help);

// Adds an option for each list. `dtypes` are the types that the verb supports.
void add_case_options(CLI::App& verb, CaseArguments& arguments, const Names& dtypes);

// Measures every case and prints the report of `verb`. Throws UsageError for a case that attention
// would refuse. `make_ready` returns the call of a case and its number of operations.
void report_cases(const char* verb, CaseArguments arguments,
                  ReadyCase (*make_ready)(const ForwardCase&));

}  // namespace heed::cli
