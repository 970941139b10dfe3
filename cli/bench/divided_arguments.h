// The options of attention over tokens that ranks divide, for `heed bench distributed` and
// `heed_measure cluster`.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/case_arguments.h"
#include "bench/divided_pass.h"

namespace heed::cli {

struct DividedArguments {
  Names divide{"automatic"};
  Numbers ranks, seq;
  std::int64_t heads = 8, kv_heads = 0, head_dim = 64;
  std::string mask = "causal";

  // One case for each length and way of dividing.
  std::vector<DividedCase> cases(bool is_backward) const;
};

// Adds --divide, --ranks, --seq, --heads, --kv-heads, --head-dim and --mask; the texts of --ranks
// and --seq name their defaults.
void add_divided_options(CLI::App& verb, DividedArguments& arguments, const char* ranks,
                         const char* seq);

}  // namespace heed::cli
