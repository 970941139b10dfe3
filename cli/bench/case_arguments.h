// The options by which a user names the calls of attention to measure.
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

// Each list makes as many cases as it has entries, in all combinations.
struct CaseArguments {
  Names path{"fused"}, dtype{"float32"}, layout{"bhtd"}, causal{"none"}, with{"none"};
  std::string mask;
  Numbers batch{1}, heads{8}, kv_heads, seq{1024}, kv_seq, head_dim{64}, value_dim, threads;
  int repetitions = 10;
  std::string in_turn;  // one of the lists, or empty
  bool with_samples = false;
  ReportOptions report;
};

// Options that take lists, of names that are allowed or of numbers from 1 to `most`.
void add_names(CLI::App& verb, const std::string& option, Names& names, const Names& allowed,
               const std::string& help);
void add_numbers(CLI::App& verb, const std::string& option, Numbers& numbers, std::int64_t most,
                 const std::string& help);

// Adds an option for each of them; dtypes are those that there are.
void add_case_options(CLI::App& verb, CaseArguments& arguments, const Names& dtypes);

// Measures every case, which must be one that attention would take, and prints the report of
// `verb`. `make_ready` gives its call and how many operations that is.
void report_cases(const char* verb, CaseArguments arguments,
                  ReadyCase (*make_ready)(const ForwardCase&));

}  // namespace heed::cli
