// heed compare: trains models that differ in one respect in the same way and compares them.
#include "compare/compare_verbs.h"
#include "verbs.h"

namespace heed::cli {

void add_compare(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "compare", "Train every kind of attention on one task, under one budget, and report");
  verb->require_subcommand(0, 1);
  add_compare_attention(*verb);
  add_compare_positions(*verb);
  add_compare_masks(*verb);
}

}  // namespace heed::cli
