// heed compare masks: the quality and cost of models that see only some of the earlier tokens.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "arguments.h"
#include "compare/attention_kinds.h"
#include "compare/compare_verbs.h"
#include "compare/masks_arguments.h"
#include "compare/masks_report.h"
#include "heed/models/causal_config.h"

namespace heed::cli {

namespace {

const std::vector<std::int64_t> kQuickParts{8};

void run_masks(MasksArguments& arguments) {
  settle(arguments);
  run_comparison(arguments.common, [&](std::string_view text) -> Compared {
    const auto comparison =
        std::make_shared<MasksComparison>(compare_masks(arguments.settings, text));
    return {to_markdown(*comparison), to_json(*comparison),
            [comparison](Theme theme) { return masks_figure(*comparison, theme); }};
  });
}

void add_steps(CLI::App& verb, MasksSettings& settings, ComparisonArguments& common) {
  add_quick_number(verb, {"--seeds", "Models of each kind, from seed 0 on"}, common,
                   {&settings.seeds, 1});
  add_quick_number(verb, {"--copy-steps", "Batches of copying that are learned from"}, common,
                   {&settings.copy_steps, 120});
  add_quick_number(verb, {"--text-steps", "Batches of text that are learned from"}, common,
                   {&settings.text_steps, 60});
}

void add_model_sizes(CLI::App& verb, MasksSettings& settings) {
  const auto add = [&](const std::string& name, std::int64_t& value, const std::string& text) {
    add_option(verb, name, value, text)->capture_default_str()->type_name("N");
  };
  add("--gap", settings.copy.gap, "Blanks between symbols and their copy: 0 to 1000");
  add("--context", settings.context, "Characters in a training sequence: 2 to 2048");
  add("--timed", settings.timed, "Tokens of the call that is timed: 1 to 65536");
  add("--layers", settings.model.layers, "Blocks of attention and feed-forward");
  add("--d-model", settings.model.d_model, "Numbers per token, a multiple of the heads");
  add("--heads", settings.model.heads, "Heads of attention");
}

}  // namespace

void settle(MasksArguments& arguments) {
  choose_quick_numbers(arguments.common);
  if (arguments.common.is_quick) arguments.settings.parts = kQuickParts;
  if (!arguments.parts.empty()) arguments.settings.parts = arguments.parts;
  check(arguments.settings);
}

void add_masks_arguments(CLI::App& verb, MasksArguments& arguments) {
  MasksSettings& settings = arguments.settings;
  add_list(verb, "--kinds", settings.kinds, one_of(attention_kind_names()),
           fmt::format("Which kinds, joined by commas; all: {}",
                       fmt::join(attention_kind_names(), ", ")))
      ->type_name("NAMES");
  add_list(verb, "--parts", arguments.parts, CLI::Range(2, 32).description(""),
           fmt::format("Sizes, joined by commas: a query sees about one part of so many of a "
                       "sequence, 2 to 32; {}, with --quick {}",
                       fmt::join(settings.parts, ","), fmt::join(kQuickParts, ",")))
      ->type_name("N,...");
  add_option(verb, "--positions", settings.model.positions,
             "How the models know where a token stands")
      ->capture_default_str()
      ->check(one_of(models::position_names()))
      ->type_name(fmt::format("{}", fmt::join(models::position_names(), "|")));
  add_comparison_arguments(verb, arguments.common);
  add_steps(verb, settings, arguments.common);
  add_model_sizes(verb, settings);
  verb.footer(
      "full: all earlier tokens. local: a window. strided, columns: it, and every so many-th\n"
      "token. global: it, and the first 4 tokens, which in copying hold nothing. bigbird:\n"
      "blocks of a window, the first tokens, blocks drawn at random. selected: the block of\n"
      "earlier tokens whose mean key is most like the query, and its own. linear: a state\n"
      "instead of a softmax.");
}

void add_compare_masks(CLI::App& compare) {
  CLI::App* verb = add_comparison(compare, "masks",
                                  "What models learn that see only some of the earlier tokens");
  const auto arguments = std::make_shared<MasksArguments>();
  add_masks_arguments(*verb, *arguments);
  verb->callback([arguments] { run_masks(*arguments); });
}

}  // namespace heed::cli
