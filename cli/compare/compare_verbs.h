// The comparisons of `heed compare`, each in a file of its own.
#pragma once

#include <CLI/App.hpp>
#include <string>

namespace heed::cli {

// The comparison that has no name: its options are those of `compare` itself.
void add_compare_attention(CLI::App& compare);

// `heed compare NAME`, a comparison with options and a callback of its own, to be added after the
// one without a name, whose options it refuses.
CLI::App* add_comparison(CLI::App& compare, const std::string& name, const std::string& shows);

void add_compare_positions(CLI::App& compare);
void add_compare_masks(CLI::App& compare);

}  // namespace heed::cli
