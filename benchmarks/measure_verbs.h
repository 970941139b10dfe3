// The verbs of heed_measure, one file each.
#pragma once

#include <CLI/App.hpp>

namespace heed::cli {

void add_parts(CLI::App& command);
void add_memory(CLI::App& command);
void add_cluster(CLI::App& command);
void add_masks(CLI::App& command);

}  // namespace heed::cli
