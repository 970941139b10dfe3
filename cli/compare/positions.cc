// heed compare positions: how far each kind of positions reaches beyond its training.
#include "train/positions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "arguments.h"
#include "compare/compare_verbs.h"
#include "compare/positions_comparison.h"
#include "compare/positions_report.h"
#include "heed/parallel.h"
#include "output_files.h"
#include "picture_file.h"
#include "train/session.h"
#include "train/text_file.h"

namespace heed::cli {

namespace {

constexpr const char* kPositionsOut = "--out";

// What --quick changes, unless it is given.
constexpr std::int64_t kQuickSeeds = 1;
constexpr std::int64_t kQuickTextSteps = 200;
constexpr std::int64_t kQuickCopySteps = 600;

struct PositionsArguments {
  PositionsSettings settings;
  std::optional<std::int64_t> seeds;
  std::optional<std::int64_t> text_steps;
  std::optional<std::int64_t> copy_steps;
  std::string text;
  std::string out;
  bool is_quick = false;
  bool is_dark = false;
  bool as_json = false;
  int threads = 0;
};

PositionsSettings chosen_settings(const PositionsArguments& arguments) {
  PositionsSettings settings = arguments.settings;
  const auto choose = [&](const std::optional<std::int64_t>& given, std::int64_t quick,
                          std::int64_t& setting) {
    setting = given.value_or(arguments.is_quick ? quick : setting);
  };
  choose(arguments.seeds, kQuickSeeds, settings.seeds);
  choose(arguments.text_steps, kQuickTextSteps, settings.text_steps);
  choose(arguments.copy_steps, kQuickCopySteps, settings.copy_steps);
  check(settings);
  return settings;
}

Picture picture_of_positions(const PositionsComparison& comparison, Theme theme) {
  return {.figure = [&comparison, theme] { return positions_figure(comparison, theme); },
          .json = [&comparison] { return to_json(comparison).dump(2) + '\n'; }};
}

void run_positions(const PositionsArguments& arguments) {
  const PositionsSettings settings = chosen_settings(arguments);
  OutputFiles files;
  const Theme theme = arguments.is_dark ? Theme::kDark : Theme::kLight;
  if (!arguments.out.empty()) {
    check_picture(kPositionsOut, arguments.out, picture_of_positions({}, theme));
    if (!arguments.text.empty()) files.protect("--text", arguments.text);
    files.reserve(kPositionsOut, arguments.out);
  }
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  const PositionsComparison comparison =
      arguments.text.empty() ? compare_positions(settings, shipped_text())
                             : compare_positions(settings, read_text_file(arguments.text));
  std::cout << (arguments.as_json ? to_json(comparison).dump() + '\n' : to_markdown(comparison));
  if (arguments.out.empty()) return;
  write_picture(files, kPositionsOut, arguments.out, picture_of_positions(comparison, theme));
  files.commit();
}

void add_sizes(CLI::App& verb, PositionsSettings& settings) {
  const auto add = [&](const std::string& name, std::int64_t& value, const std::string& text) {
    add_option(verb, name, value, text)->capture_default_str()->type_name("N");
  };
  add("--context", settings.context,
      "Characters in a training sequence; measured at 1, 2, 4 and 8 times as many: 2 to 256");
  add("--length", settings.length,
      "Symbols to repeat in training, at most; measured up to 3 times as many: 2 to 256");
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
  add_list(*verb, "--positions", settings.positions, CLI::IsMember(position_names()),
           fmt::format("Which kinds, joined by commas; all: {}", fmt::join(position_names(), ", ")))
      ->type_name("NAMES");
  add_option(*verb, "--text", arguments->text,
             "What to learn, in UTF-8; a short story that comes with heed if not given")
      ->type_name("FILE");
  const auto add = [&](const std::string& name, std::optional<std::int64_t>& value,
                       const std::string& text, std::int64_t full, std::int64_t quick) {
    add_option(*verb, name, value, fmt::format("{}: {}, with --quick {}", text, full, quick))
        ->type_name("N");
  };
  add("--seeds", arguments->seeds, "Models of each kind, from seed 0 on", settings.seeds,
      kQuickSeeds);
  add("--text-steps", arguments->text_steps, "Batches of text that are learned from",
      settings.text_steps, kQuickTextSteps);
  add("--copy-steps", arguments->copy_steps, "Batches of copying that are learned from",
      settings.copy_steps, kQuickCopySteps);
  add_flag(*verb, "--quick", arguments->is_quick, "One seed and fewer steps, for a first look");
  add_sizes(*verb, settings);
  add_option(*verb, kPositionsOut, arguments->out,
             "A picture, or the numbers: ends in " +
                 picture_endings(picture_of_positions({}, Theme::kLight)))
      ->type_name("FILE");
  add_flag(*verb, "--dark", arguments->is_dark, "Draw the picture on a dark ground");
  add_flag(*verb, "--json", arguments->as_json, "Print the result as one JSON object");
  add_threads_option(*verb, arguments->threads);
  verb->footer(
      "Losses are cross-entropies in nats a character, of the same characters at every\n"
      "length. Learned positions end where training did; sinusoidal ones go on, but no\n"
      "model has seen them.");
  verb->callback([arguments] { run_positions(*arguments); });
}

}  // namespace heed::cli
