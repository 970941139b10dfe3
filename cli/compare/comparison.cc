#include "compare/compare_verbs.h"

namespace heed::cli {

CLI::App* add_comparison(CLI::App& compare, const std::string& name, const std::string& shows) {
  CLI::App* comparison = compare.add_subcommand(name, shows)->group("What else to compare");
  for (CLI::Option* option : compare.get_options()) {
    if (option != compare.get_help_ptr()) comparison->excludes(option);
  }
  comparison->preparse_callback([&compare](std::size_t) {
    for (CLI::Option* option : compare.get_options()) option->required(false);
  });
  return comparison;
}

}  // namespace heed::cli
