// The options of a comparison of masks.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <vector>

#include "compare/comparison_arguments.h"
#include "compare/masks_comparison.h"

namespace heed::cli {

struct MasksArguments {
  MasksSettings settings;
  std::vector<std::int64_t> parts;  // empty: those of the settings, or of --quick
  ComparisonArguments common;
};

// `arguments` must outlive the verb.
void add_masks_arguments(CLI::App& verb, MasksArguments& arguments);

// Fills in what was not given. Throws what check() throws.
void settle(MasksArguments& arguments);

}  // namespace heed::cli
