// heed compare: models that differ in one thing, trained alike.
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
