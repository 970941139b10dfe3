#include "compare/masks_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace heed::cli {

namespace {

constexpr ScoreFormat kLossFormat{1, 3};

// The costs are relative to the first kind, which is full attention by default.
std::string cost_table(const MasksComparison& comparison) {
  const std::int64_t timed = comparison.settings.timed;
  const MasksResult& first = comparison.results.front();
  std::string text = table_head({"attention", "visible, %", "milliseconds",
                                 "of " + first.attention.label(), "workspace, kB"});
  for (const MasksResult& result : comparison.results) {
    text += table_row(
        {result.attention.label(), share_cell(result.attention, timed),
         fmt::format("{:.2f}", 1e3 * result.cost.seconds),
         fmt::format("{:.2f}", result.cost.seconds / first.cost.seconds),
         result.cost.workspace_bytes
             ? fmt::format("{:.0f}", 1e-3 * static_cast<double>(*result.cost.workspace_bytes))
             : "–"});
  }
  return text;
}

std::string quality_table(const MasksComparison& comparison) {
  const std::int64_t length = comparison.settings.copy.sequence_length();
  std::string text = table_head({"attention", fmt::format("in sequences of {}", length),
                                 "visible, %", "copying, %", "text, nats"});
  for (const MasksResult& result : comparison.results) {
    std::string mask = result.attention.text(length);
    std::replace(mask.begin(), mask.end(), '|', '/');  // '|' would end the table cell
    text += table_row({result.attention.label(), mask, share_cell(result.attention, length),
                       score_cell(result.copy, kPercent), score_cell(result.loss, kLossFormat)});
  }
  return text;
}

nlohmann::json json_of(const MasksResult& result, const MasksSettings& settings) {
  const SizedAttention& attention = result.attention;
  nlohmann::json json{{"attention", attention.name},
                      {"parts", attention.parts},
                      {"text", attention.text(settings.copy.sequence_length())},
                      {"seconds", result.cost.seconds},
                      {"copy", json_of(result.copy)},
                      {"loss", json_of(result.loss)}};
  if (result.cost.workspace_bytes) json["workspace_bytes"] = *result.cost.workspace_bytes;
  const auto put_share = [&](const char* name, std::int64_t length) {
    const auto share = attention.visible_share(length);
    json[name] = share ? nlohmann::json(*share) : nlohmann::json(nullptr);
  };
  put_share("visible_share_of_copy", settings.copy.sequence_length());
  put_share("visible_share_of_text", settings.context);
  put_share("visible_share_of_timed", settings.timed);
  return json;
}

// Returns the scores of a kind at each visible share. A kind without pairs gets a line over the
// whole width.
Curve quality_curve(const MasksComparison& comparison, const std::string& kind,
                    const QualityScores& quality) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < comparison.results.size(); ++i) {
    const SizedAttention& attention = comparison.results[i].attention;
    if (attention.name != kind) continue;
    const double y = quality.unit * quality.scores[i].mean();
    const auto share = attention.visible_share(quality.length);
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

std::vector<SeedScores> scores_of(const MasksComparison& comparison,
                                  SeedScores MasksResult::*score) {
  std::vector<SeedScores> scores;
  for (const MasksResult& result : comparison.results) scores.push_back(result.*score);
  return scores;
}

}  // namespace

std::string share_cell(const SizedAttention& attention, std::int64_t length) {
  const auto share = attention.visible_share(length);
  return share ? fmt::format("{:.1f}", 100 * *share) : "–";
}

nlohmann::json json_of(const SeedScores& scores) {
  nlohmann::json json{{"of_seeds", scores.of_seeds}};
  json["mean"] = scores.is_measured() ? nlohmann::json(scores.mean()) : nlohmann::json(nullptr);
  return json;
}

Panel titled_panel(const std::vector<Curve>& curves, const ChartOptions& options) {
  Panel panel = std::move(curves_figure(curves, options).panels.front());
  panel.title = options.title;
  return panel;
}

ChartOptions percent_chart(const std::string& title, const std::string& x_title) {
  return {.title = title,
          .x_title = x_title,
          .y_title = "right, %",
          .has_log_x = true,
          .y_low = -3,
          .y_high = 103};
}

Panel quality_panel(const MasksComparison& comparison, const QualityScores& quality,
                    const ChartOptions& options) {
  std::vector<Curve> curves;
  for (const std::string& kind : comparison.settings.kinds) {
    curves.push_back(quality_curve(comparison, kind, quality));
  }
  return titled_panel(curves, options);
}

nlohmann::json to_json(const MasksComparison& comparison) {
  const MasksSettings& settings = comparison.settings;
  nlohmann::json json{{"characters", comparison.characters}, {"seeds", settings.seeds},
                      {"context", settings.context},         {"timed", settings.timed},
                      {"copy_steps", settings.copy_steps},   {"text_steps", settings.text_steps},
                      {"layers", settings.model.layers},     {"d_model", settings.model.d_model},
                      {"heads", settings.model.heads},       {"distance", settings.copy.distance()},
                      {"results", nlohmann::json::array()}};
  for (const MasksResult& result : comparison.results) {
    json["results"].push_back(json_of(result, settings));
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
             "## Cost\n\nOne causal call of 4 heads of 64 dimensions over {} tokens, and its "
             "workspace: what it takes\nbeside its operands and its result.\n\n",
             settings.timed) +
         cost_table(comparison) +
         fmt::format(
             "\n## Quality\n\nCopying: {} symbols that return {} positions later; {} steps. Text: "
             "sequences of {}\ncharacters, the held-out ones are predicted; {} steps. By chance "
             "{:.1f} % are copied.\n\n",
             settings.copy.length, settings.copy.distance(), settings.copy_steps, settings.context,
             settings.text_steps, 100.0 / static_cast<double>(settings.copy.symbols)) +
         quality_table(comparison);
}

Figure masks_figure(const MasksComparison& comparison, Theme theme) {
  const MasksSettings& settings = comparison.settings;
  Figure figure{.title = "What a model learns of what it sees",
                .note = fmt::format("Seeds: {}. Linear attention has no pairs: a line across.",
                                    settings.seeds),
                .columns = 2,
                .theme = theme};
  figure.panels.push_back(quality_panel(
      comparison, {scores_of(comparison, &MasksResult::copy), settings.copy.sequence_length(), 100},
      percent_chart(fmt::format("Copying over {} positions", settings.copy.distance()),
                    kShareTitle)));
  figure.panels.push_back(quality_panel(
      comparison, {scores_of(comparison, &MasksResult::loss), settings.context, 1},
      {.title = "Text", .x_title = kShareTitle, .y_title = "loss, nats", .has_log_x = true}));
  return figure;
}

}  // namespace heed::cli
