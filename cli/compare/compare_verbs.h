// The comparisons of `heed compare`, one file each.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace heed::cli {

// Adds the comparison without a name: its options are those of `compare` itself.
void add_compare_attention(CLI::App& compare);

// Adds `heed compare NAME`, a comparison with its own options and callback. It refuses the options
// of the comparison without a name, which must be added before it.
CLI::App* add_comparison(CLI::App& compare, const std::string& name, const std::string& shows);

void add_compare_positions(CLI::App& compare);
void add_compare_masks(CLI::App& compare);

}  // namespace heed::cli
