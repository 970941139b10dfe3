// heed_measure masks: what `heed compare masks` measures, and beside it the heap that a call takes,
// associative recall, and how far windows reach.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "compare/masks_arguments.h"
#include "compare/masks_report.h"
#include "compare/training.h"
#include "heed/tasks/recall_task.h"
#include "measure_verbs.h"
#include "support/heap.h"

namespace heed::cli {

namespace {

// The task of the table of windows and layers: information has to travel 16 positions.
constexpr tasks::CopyTask kReachCopy{.length = 4, .symbols = 16, .gap = 12};
constexpr std::int64_t kReachWindows[] = {2, 4, 8, 16};
constexpr std::int64_t kReachLayers[] = {1, 2, 4};

struct MoreArguments {
  MasksArguments masks;
  // As in copying, the first tokens hold nothing useful.
  tasks::RecallTask recall = {.pairs = 16, .questions = 16, .keys = 16, .values = 8, .lead = 8};
  std::int64_t recall_steps = 400;
  std::int64_t reach_steps = 400;
};

// The result of a sliding window in a model of `layers` layers, on kReachCopy.
struct ReachResult {
  std::int64_t window;
  std::int64_t layers;
  SeedScores copy = {};
};

struct MoreMeasured {
  MasksComparison masks;
  std::vector<std::int64_t> heap_bytes;  // of each result, beside operands and result of the call
  std::vector<SeedScores> recall;        // of each result: parts of correct values
  std::vector<ReachResult> reach;        // the first seed only
};

void check(const MoreArguments& arguments) {
  check_range("--recall-steps", arguments.recall_steps, 1, 1'000'000);
  check_range("--reach-steps", arguments.reach_steps, 1, 1'000'000);
  check_range("--pairs", arguments.recall.pairs, 1, 256);
  check_range("--questions", arguments.recall.questions, 1, arguments.recall.pairs);
  check_range("--keys", arguments.recall.keys, arguments.recall.pairs, 256);
  check_range("--values", arguments.recall.values, 1, 256);
  check_given(task_model(arguments.masks.settings.model, arguments.recall.vocab_size(),
                         arguments.recall.sequence_length()));
}

std::int64_t heap_bytes_of(const models::AttentionKind& kind, std::int64_t length) {
  const TimedOperands in(length);
  return testing_support::measure_extra_bytes(
      [&] { return attend_once(kind, in.query, in.key, in.value); });
}

void learn_reach(const MoreArguments& arguments, ComparedTraining& training, ReachResult& result) {
  set_seed(0);
  models::CausalConfig sizes = task_model(arguments.masks.settings.model, kReachCopy.vocab_size(),
                                          kReachCopy.sequence_length());
  sizes.layers = result.layers;
  models::CausalTransformer model(sizes, {.mask = sliding_window(result.window, 0)});
  result.copy.of_seeds.push_back(learn_task(kReachCopy, model, arguments.reach_steps, training));
  training.say(fmt::format("windows of {}, layers {}: copying {:.1f} %", result.window,
                           result.layers, 100 * result.copy.mean()));
}

void learn_more(const MoreArguments& arguments, MoreMeasured& measured) {
  const MasksSettings& settings = arguments.masks.settings;
  const auto models = static_cast<std::int64_t>(measured.masks.results.size()) * settings.seeds;
  ComparedTraining training(
      models * arguments.recall_steps +
          static_cast<std::int64_t>(measured.reach.size()) * arguments.reach_steps,
      "tokens");
  for (std::int64_t seed = 0; seed < settings.seeds; ++seed) {
    for (std::size_t i = 0; i < measured.recall.size(); ++i) {
      const SizedAttention& attention = measured.masks.results[i].attention;
      set_seed(static_cast<std::uint64_t>(seed));
      measured.recall[i].of_seeds.push_back(learn_task(settings.model, arguments.recall, attention,
                                                       arguments.recall_steps, training));
      training.say(fmt::format("{}, seed {}: recall {:.1f} %", attention.label(), seed,
                               100 * measured.recall[i].of_seeds.back()));
    }
  }
  for (ReachResult& result : measured.reach) learn_reach(arguments, training, result);
}

MoreMeasured measure_more(const MoreArguments& arguments, std::string_view text) {
  const MasksSettings& settings = arguments.masks.settings;
  MoreMeasured measured{compare_masks(settings, text), {}, {}, {}};
  for (const MasksResult& result : measured.masks.results) {
    measured.heap_bytes.push_back(
        heap_bytes_of(result.attention.at(settings.timed), settings.timed));
  }
  measured.recall.resize(measured.masks.results.size());
  for (const std::int64_t window : kReachWindows) {
    for (const std::int64_t layers : kReachLayers) measured.reach.push_back({window, layers, {}});
  }
  learn_more(arguments, measured);
  return measured;
}

std::string recall_table(const MoreArguments& arguments, const MoreMeasured& measured) {
  std::string text = table_head({"attention", "visible, %", "recall, %", "heap of a call, kB"});
  for (std::size_t i = 0; i < measured.recall.size(); ++i) {
    const SizedAttention& attention = measured.masks.results[i].attention;
    text += table_row({attention.label(), share_cell(attention, arguments.recall.sequence_length()),
                       score_cell(measured.recall[i], kPercent),
                       fmt::format("{:.0f}", 1e-3 * static_cast<double>(measured.heap_bytes[i]))});
  }
  return text;
}

std::string reach_table(const MoreMeasured& measured) {
  std::vector<std::string> names{"window"};
  for (const std::int64_t layers : kReachLayers) {
    names.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
  }
  std::string text = table_head(names);
  for (const std::int64_t window : kReachWindows) {
    std::vector<std::string> cells{fmt::format("{}", window)};
    for (const ReachResult& result : measured.reach) {
      if (result.window == window) cells.push_back(score_cell(result.copy, kPercent));
    }
    text += table_row(cells);
  }
  return text;
}

std::string to_markdown(const MoreArguments& arguments, const MoreMeasured& measured) {
  const tasks::RecallTask& recall = arguments.recall;
  return to_markdown(measured.masks) +
         fmt::format(
             "\n## Recall, and the heap\n\n{} pairs of a key and its value, then {} keys whose "
             "values are asked for; {} steps. By chance: {:.1f} %.\nThe heap is what the timed "
             "call "
             "takes beside its operands and its result.\n\n",
             recall.pairs, recall.questions, arguments.recall_steps,
             100.0 / static_cast<double>(recall.values)) +
         recall_table(arguments, measured) +
         fmt::format(
             "\n## How far windows reach\n\nCopying over {} positions by models that see "
             "windows alone, in %; {} steps. A layer carries what\nit read as far as its window: "
             "{} layers of {} reach {}.\n\n",
             kReachCopy.distance(), arguments.reach_steps, kReachLayers[1], kReachWindows[2],
             kReachLayers[1] * kReachWindows[2]) +
         reach_table(measured);
}

nlohmann::json to_json(const MoreArguments& arguments, const MoreMeasured& measured) {
  nlohmann::json json = to_json(measured.masks);
  json.update({{"recall_steps", arguments.recall_steps},
               {"reach_steps", arguments.reach_steps},
               {"pairs", arguments.recall.pairs},
               {"questions", arguments.recall.questions},
               {"keys", arguments.recall.keys},
               {"values", arguments.recall.values},
               {"reach_distance", kReachCopy.distance()},
               {"reach", nlohmann::json::array()}});
  for (std::size_t i = 0; i < measured.recall.size(); ++i) {
    nlohmann::json& result = json["results"][i];
    const auto share =
        measured.masks.results[i].attention.visible_share(arguments.recall.sequence_length());
    result["recall"] = json_of(measured.recall[i]);
    result["bytes"] = measured.heap_bytes[i];
    result["visible_share_of_recall"] = share ? nlohmann::json(*share) : nlohmann::json(nullptr);
  }
  for (const ReachResult& result : measured.reach) {
    json["reach"].push_back(
        {{"window", result.window}, {"layers", result.layers}, {"copy", json_of(result.copy)}});
  }
  return json;
}

Panel reach_panel(const MoreMeasured& measured) {
  std::vector<Curve> curves;
  for (const std::int64_t layers : kReachLayers) {
    Curve& curve = curves.emplace_back();
    curve.name = fmt::format("{} layer{}", layers, layers == 1 ? "" : "s");
    curve.has_markers = true;
    for (const ReachResult& result : measured.reach) {
      if (result.layers != layers) continue;
      curve.x.push_back(static_cast<double>(result.window * layers));
      curve.y.push_back(100 * result.copy.mean());
    }
  }
  return titled_panel(curves, percent_chart(fmt::format("Windows alone, copying over {} positions",
                                                        kReachCopy.distance()),
                                            "window × layers"));
}

Figure more_figure(const MoreArguments& arguments, const MoreMeasured& measured, Theme theme) {
  Figure figure = masks_figure(measured.masks, theme);
  figure.panels.insert(
      figure.panels.begin(),
      quality_panel(measured.masks, {measured.recall, arguments.recall.sequence_length(), 100},
                    percent_chart("Associative recall", kShareTitle)));
  figure.panels.push_back(reach_panel(measured));
  return figure;
}

void add_more_options(CLI::App& verb, MoreArguments& arguments) {
  ComparisonArguments& common = arguments.masks.common;
  add_quick_number(verb, {"--recall-steps", "Batches of recall that are learned from"}, common,
                   {&arguments.recall_steps, 300});
  add_quick_number(verb, {"--reach-steps", "Batches for the table of windows and layers"}, common,
                   {&arguments.reach_steps, 150});
  const auto add = [&](const std::string& name, std::int64_t& value, const std::string& text) {
    add_option(verb, name, value, text)->capture_default_str()->type_name("N");
  };
  add("--pairs", arguments.recall.pairs, "Keys with a value, for recall: 1 to 256");
  add("--questions", arguments.recall.questions, "Of which so many are asked for: 1 to --pairs");
  add("--keys", arguments.recall.keys, "Keys to draw from: --pairs to 256");
  add("--values", arguments.recall.values, "Values to draw from: 1 to 256");
}

}  // namespace

void add_masks(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "masks", "What `heed compare masks` measures; recall, reach and the heap of a call too");
  const auto arguments = std::make_shared<MoreArguments>();
  add_masks_arguments(*verb, arguments->masks);
  add_more_options(*verb, *arguments);
  verb->callback([arguments] {
    settle(arguments->masks);
    check(*arguments);
    run_comparison(arguments->masks.common, [&](std::string_view text) -> Compared {
      const auto measured = std::make_shared<MoreMeasured>(measure_more(*arguments, text));
      return {to_markdown(*arguments, *measured), to_json(*arguments, *measured),
              [=](Theme theme) { return more_figure(*arguments, *measured, theme); }};
    });
  });
}

}  // namespace heed::cli
