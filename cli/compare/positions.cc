// heed compare positions: the quality of each kind of positions beyond the training length.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "arguments.h"
#include "compare/compare_verbs.h"
#include "compare/comparison_arguments.h"
#include "compare/positions_comparison.h"
#include "compare/positions_report.h"
#include "heed/models/causal_config.h"

namespace heed::cli {

namespace {

struct PositionsArguments {
  PositionsSettings settings;
  ComparisonArguments common;
};

void run_positions(PositionsArguments& arguments) {
  choose_quick_numbers(arguments.common);
  check(arguments.settings);
  run_comparison(arguments.common, [&](std::string_view text) -> Compared {
    const auto comparison =
        std::make_shared<PositionsComparison>(compare_positions(arguments.settings, text));
    return {to_markdown(*comparison), to_json(*comparison),
            [comparison](Theme theme) { return positions_figure(*comparison, theme); }};
  });
}

void add_sizes(CLI::App& verb, PositionsSettings& settings) {
  const auto add = [&](const std::string& name, std::int64_t& value, const std::string& text) {
    add_option(verb, name, value, text)->capture_default_str()->type_name("N");
  };
  add("--context", settings.context,
      "Characters in a training sequence; measured at 1, 2, 4 and 8 times as many: 2 to 256");
  add("--length", settings.length,
      "Symbols to repeat in training, at most; measured up to 3 times as many: 2 to 256");
  add("--text-steps", settings.text_steps, "Batches of text that are learned from");
  add("--layers", settings.model.layers, "Blocks of attention and feed-forward");
  add("--d-model", settings.model.d_model, "Numbers per token, a multiple of the heads");
  add("--heads", settings.model.heads, "Heads of attention");
}

}  // namespace

void add_compare_positions(CLI::App& compare) {
  CLI::App* verb = add_comparison(compare, "positions",
                                  "How far each kind of positions reaches beyond training");
  const auto arguments = std::make_shared<PositionsArguments>();
  PositionsSettings& settings = arguments->settings;
  add_list(*verb, "--positions", settings.positions, one_of(models::position_names()),
           fmt::format("Which kinds, joined by commas; all: {}",
                       fmt::join(models::position_names(), ", ")))
      ->type_name("NAMES");
  ComparisonArguments& common = arguments->common;
  add_comparison_arguments(*verb, common);
  add_quick_number(*verb, {"--seeds", "Models of each kind, from seed 0 on"}, common,
                   {&settings.seeds, 1});
  add_quick_number(*verb, {"--copy-steps", "Batches of copying that are learned from"}, common,
                   {&settings.copy_steps, 600});
  add_sizes(*verb, settings);
  verb->footer(
      "Losses are cross-entropies in nats a character, of the same characters at every\n"
      "length. Learned positions end where training did; sinusoidal ones go on, but no\n"
      "model has seen them.");
  verb->callback([arguments] { run_positions(*arguments); });
}

}  // namespace heed::cli
