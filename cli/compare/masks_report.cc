#include "compare/masks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "heed/viz/chart.h"

namespace heed::cli {

namespace {

// A score of a result and its format.
struct MasksScore {
  SeedScores MasksResult::*of;
  ScoreFormat format;
};

constexpr MasksScore kRecallScore{&MasksResult::recall, {100, 1}};
constexpr MasksScore kCopyScore{&MasksResult::copy, {100, 1}};
constexpr MasksScore kTextScore{&MasksResult::loss, {1, 3}};

std::string share_cell(const SizedAttention& attention, std::int64_t length) {
  const auto share = attention.visible_share(length);
  return share ? fmt::format("{:.1f}", 100 * *share) : "–";
}

// The costs are relative to the first kind, which is full attention by default.
std::string cost_table(const MasksComparison& comparison) {
  const std::int64_t timed = comparison.settings.timed;
  const MasksResult& first = comparison.results.front();
  std::string text = table_head(
      {"attention", "visible, %", "milliseconds", "of " + first.attention.label(), "kB"});
  for (const MasksResult& result : comparison.results) {
    text += table_row({result.attention.label(), share_cell(result.attention, timed),
                       fmt::format("{:.2f}", 1e3 * result.cost.seconds),
                       fmt::format("{:.2f}", result.cost.seconds / first.cost.seconds),
                       fmt::format("{:.0f}", static_cast<double>(result.cost.bytes) / 1e3)});
  }
  return text;
}

std::string quality_table(const MasksComparison& comparison) {
  const std::int64_t length = comparison.settings.copy.sequence_length();
  std::string text = table_head(
      {"attention", "in sequences of 64", "visible, %", "recall, %", "copying, %", "text, nats"});
  for (const MasksResult& result : comparison.results) {
    std::vector<std::string> cells{result.attention.label(), result.attention.text(length),
                                   share_cell(result.attention, length)};
    for (const MasksScore& score : {kRecallScore, kCopyScore, kTextScore}) {
      cells.push_back(score_cell(result.*score.of, score.format));
    }
    std::replace(cells[1].begin(), cells[1].end(), '|', '/');  // '|' would end the table cell
    text += table_row(cells);
  }
  return text;
}

std::string reach_table(const MasksComparison& comparison) {
  std::vector<std::string> names{"window"};
  for (const std::int64_t layers : kReachLayers) {
    names.push_back(fmt::format("{} layer{}", layers, layers == 1 ? "" : "s"));
  }
  std::string text = table_head(names);
  for (const std::int64_t window : kReachWindows) {
    std::vector<std::string> cells{fmt::format("{}", window)};
    for (const ReachResult& result : comparison.reach) {
      if (result.window == window) cells.push_back(score_cell(result.copy, kCopyScore.format));
    }
    text += table_row(cells);
  }
  return text;
}

nlohmann::json json_of(const SeedScores& scores) {
  nlohmann::json json{{"of_seeds", scores.of_seeds}};
  json["mean"] = scores.is_measured() ? nlohmann::json(scores.mean()) : nlohmann::json(nullptr);
  return json;
}

nlohmann::json json_of(const MasksResult& result, const MasksSettings& settings) {
  const SizedAttention& attention = result.attention;
  nlohmann::json json{{"attention", attention.name},
                      {"parts", attention.parts},
                      {"text", attention.text(settings.copy.sequence_length())},
                      {"seconds", result.cost.seconds},
                      {"bytes", result.cost.bytes},
                      {"recall", json_of(result.recall)},
                      {"copy", json_of(result.copy)},
                      {"loss", json_of(result.loss)}};
  const auto put_share = [&](const char* name, std::int64_t length) {
    const auto share = attention.visible_share(length);
    json[name] = share ? nlohmann::json(*share) : nlohmann::json(nullptr);
  };
  put_share("visible_share_of_recall", settings.recall.sequence_length());
  put_share("visible_share_of_copy", settings.copy.sequence_length());
  put_share("visible_share_of_text", settings.context);
  put_share("visible_share_of_timed", settings.timed);
  return json;
}

// Returns the scores of a kind at each visible share. A kind without pairs gets a line over the
// whole width.
Curve quality_curve(const MasksComparison& comparison, const std::string& kind,
                    const MasksScore& score, std::int64_t length) {
  std::vector<std::pair<double, double>> points;
  for (const MasksResult& result : comparison.results) {
    if (result.attention.name != kind) continue;
    const double y = score.format.unit * (result.*score.of).mean();
    const auto share = result.attention.visible_share(length);
    if (share) points.emplace_back(100 * *share, y);
    if (!share) points.insert(points.end(), {{5, y}, {100, y}});
  }
  std::sort(points.begin(), points.end());
  Curve curve{.name = kind, .has_markers = true};
  for (const auto& [x, y] : points) {
    curve.x.push_back(x);
    curve.y.push_back(y);
  }
  return curve;
}

Panel titled_panel(const std::vector<Curve>& curves, const ChartOptions& options) {
  Panel panel = std::move(curves_figure(curves, options).panels.front());
  panel.title = options.title;
  return panel;
}

Panel quality_panel(const MasksComparison& comparison, const MasksScore& score, std::int64_t length,
                    const ChartOptions& options) {
  std::vector<Curve> curves;
  for (const std::string& kind : comparison.settings.kinds) {
    curves.push_back(quality_curve(comparison, kind, score, length));
  }
  return titled_panel(curves, options);
}

Panel reach_panel(const MasksComparison& comparison, const ChartOptions& options) {
  std::vector<Curve> curves;
  for (const std::int64_t layers : kReachLayers) {
    Curve& curve = curves.emplace_back();
    curve.name = fmt::format("{} layer{}", layers, layers == 1 ? "" : "s");
    curve.has_markers = true;
    for (const ReachResult& result : comparison.reach) {
      if (result.layers != layers) continue;
      curve.x.push_back(static_cast<double>(result.window * layers));
      curve.y.push_back(100 * result.copy.mean());
    }
  }
  return titled_panel(curves, options);
}

ChartOptions percent_chart(const std::string& title, const std::string& x_title) {
  return {.title = title,
          .x_title = x_title,
          .y_title = "right, %",
          .has_log_x = true,
          .y_low = -3,
          .y_high = 103};
}

constexpr const char* kShareTitle = "visible pairs, % of the causal ones";

}  // namespace

nlohmann::json to_json(const MasksComparison& comparison) {
  const MasksSettings& settings = comparison.settings;
  nlohmann::json json{{"characters", comparison.characters},
                      {"seeds", settings.seeds},
                      {"context", settings.context},
                      {"timed", settings.timed},
                      {"recall_steps", settings.recall_steps},
                      {"copy_steps", settings.copy_steps},
                      {"text_steps", settings.text_steps},
                      {"reach_steps", settings.reach_steps},
                      {"layers", settings.model.layers},
                      {"d_model", settings.model.d_model},
                      {"heads", settings.model.heads},
                      {"pairs", settings.recall.pairs},
                      {"questions", settings.recall.questions},
                      {"keys", settings.recall.keys},
                      {"values", settings.recall.values},
                      {"distance", settings.copy.distance()},
                      {"reach_distance", kReachCopy.distance()},
                      {"results", nlohmann::json::array()},
                      {"reach", nlohmann::json::array()}};
  for (const MasksResult& result : comparison.results) {
    json["results"].push_back(json_of(result, settings));
  }
  for (const ReachResult& result : comparison.reach) {
    json["reach"].push_back(
        {{"window", result.window}, {"layers", result.layers}, {"copy", json_of(result.copy)}});
  }
  return json;
}

std::string to_markdown(const MasksComparison& comparison) {
  const MasksSettings& settings = comparison.settings;
  const std::string spread =
      settings.seeds > 1 ? "; means ± the sample deviation" : ", which tells little";
  return fmt::format("# Masks compared\n\nlayers {}, d_model {}, heads {}, seeds {}{}.\n\n",
                     settings.model.layers, settings.model.d_model, settings.model.heads,
                     settings.seeds, spread) +
         fmt::format(
             "## Cost\n\nOne causal call of 4 heads of 64 dimensions over {} tokens, and what it "
             "takes of the heap\nbeside its operands and its result.\n\n",
             settings.timed) +
         cost_table(comparison) +
         fmt::format(
             "\n## Quality\n\nRecall: {} pairs of a key and its value, then {} keys whose values "
             "are asked for; {} steps.\nCopying: {} symbols that return {} positions later; {} "
             "steps. Text: sequences of {}\ncharacters, the held-out ones are predicted; {} "
             "steps. By chance: {:.1f} and {:.1f} %.\n\n",
             settings.recall.pairs, settings.recall.questions, settings.recall_steps,
             settings.copy.length, settings.copy.distance(), settings.copy_steps, settings.context,
             settings.text_steps, 100.0 / static_cast<double>(settings.recall.values),
             100.0 / static_cast<double>(settings.copy.symbols)) +
         quality_table(comparison) +
         fmt::format(
             "\n## How far windows reach\n\nCopying over {} positions by models that see "
             "windows alone, in %; {} steps. A layer carries what\nit read as far as its window: "
             "{} layers of {} reach {}.\n\n",
             kReachCopy.distance(), settings.reach_steps, kReachLayers[1], kReachWindows[2],
             kReachLayers[1] * kReachWindows[2]) +
         reach_table(comparison);
}

Figure masks_figure(const MasksComparison& comparison, Theme theme) {
  const MasksSettings& settings = comparison.settings;
  Figure figure{.title = "What a model learns of what it sees",
                .note = fmt::format("Seeds: {}. Linear attention has no pairs: a line across.",
                                    settings.seeds),
                .columns = 2,
                .theme = theme};
  figure.panels.push_back(quality_panel(comparison, kRecallScore, settings.recall.sequence_length(),
                                        percent_chart("Associative recall", kShareTitle)));
  figure.panels.push_back(quality_panel(
      comparison, kCopyScore, settings.copy.sequence_length(),
      percent_chart(fmt::format("Copying over {} positions", settings.copy.distance()),
                    kShareTitle)));
  figure.panels.push_back(quality_panel(
      comparison, kTextScore, settings.context,
      {.title = "Text", .x_title = kShareTitle, .y_title = "loss, nats", .has_log_x = true}));
  figure.panels.push_back(reach_panel(
      comparison,
      percent_chart(fmt::format("Windows alone, copying over {} positions", kReachCopy.distance()),
                    "window × layers")));
  return figure;
}

}  // namespace heed::cli
