#include "compare/positions_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "heed/viz/chart.h"

namespace heed::cli {

namespace {

constexpr const char* kNotThere = "–";

// A score of a result, its format, and whether less is better.
struct Score {
  std::vector<ScoreAtLength> PositionsResult::*of;
  ScoreFormat format;
  bool is_better_low;
};

constexpr Score kLossScore{&PositionsResult::loss, {1, 3}, true};
constexpr Score kSymbolScore{&PositionsResult::symbol_accuracy, {100, 1}, false};
constexpr Score kSequenceScore{&PositionsResult::exact_match, {100, 1}, false};

// Returns a table with a row for each kind and a column for each length.
std::string score_table(const PositionsComparison& comparison, const Score& score,
                        std::int64_t PositionsResult::*parameters) {
  std::vector<std::string> names{"positions", "parameters"};
  for (const ScoreAtLength& at : comparison.results.front().*score.of) {
    names.push_back(fmt::format("{}", at.length));
  }
  std::string text = table_head(names);
  for (const PositionsResult& result : comparison.results) {
    std::vector<std::string> cells{result.positions, fmt::format("{}", result.*parameters)};
    for (const ScoreAtLength& at : result.*score.of)
      cells.push_back(score_cell(at.scores, score.format));
    text += table_row(cells);
  }
  return text;
}

// Returns the rank of a result: 1 + the number of kinds with a better mean at the length. Equal
// means share a rank.
std::string place_of(const PositionsComparison& comparison, const Score& score,
                     const PositionsResult& result, std::size_t length) {
  const ScoreAtLength& own = (result.*score.of)[length];
  if (!own.scores.is_measured()) return kNotThere;
  const auto better = std::count_if(
      comparison.results.begin(), comparison.results.end(), [&](const PositionsResult& other) {
        const ScoreAtLength& at = (other.*score.of)[length];
        if (!at.scores.is_measured()) return false;
        return score.is_better_low ? at.scores.mean() < own.scores.mean()
                                   : at.scores.mean() > own.scores.mean();
      });
  return fmt::format("{}", 1 + better);
}

// Returns the ranks at the training length and at the longest length.
std::string places_table(const PositionsComparison& comparison) {
  std::vector<std::string> names{"positions"};
  const PositionsResult& first = comparison.results.front();
  for (const ScoreAtLength* at : {&first.loss.front(), &first.loss.back()}) {
    names.push_back(fmt::format("text at {}", at->length));
  }
  for (const ScoreAtLength* at : {&first.symbol_accuracy.front(), &first.symbol_accuracy.back()}) {
    names.push_back(fmt::format("copying at {}", at->length));
  }
  std::string text = table_head(names);
  for (const PositionsResult& result : comparison.results) {
    std::vector<std::string> cells{result.positions};
    for (const Score& score : {kLossScore, kSymbolScore}) {
      cells.push_back(place_of(comparison, score, result, 0));
      cells.push_back(place_of(comparison, score, result, (first.*score.of).size() - 1));
    }
    text += table_row(cells);
  }
  return text;
}

nlohmann::json json_of(const ScoreAtLength& at) {
  nlohmann::json json{{"length", at.length}, {"of_seeds", at.scores.of_seeds}};
  json["mean"] =
      at.scores.is_measured() ? nlohmann::json(at.scores.mean()) : nlohmann::json(nullptr);
  return json;
}

nlohmann::json json_of(const std::vector<ScoreAtLength>& scores) {
  nlohmann::json json = nlohmann::json::array();
  for (const ScoreAtLength& at : scores) json.push_back(json_of(at));
  return json;
}

Panel curves_of(const PositionsComparison& comparison, const Score& score,
                const ChartOptions& options) {
  std::vector<Curve> curves;
  for (const PositionsResult& result : comparison.results) {
    Curve curve{.name = result.positions, .has_markers = true};
    for (const ScoreAtLength& at : result.*score.of) {
      if (!at.scores.is_measured()) continue;
      curve.x.push_back(static_cast<double>(at.length));
      curve.y.push_back(score.format.unit * at.scores.mean());
    }
    curves.push_back(std::move(curve));
  }
  Panel panel = std::move(curves_figure(curves, options).panels.front());
  panel.title = options.title;
  return panel;
}

}  // namespace

nlohmann::json to_json(const PositionsComparison& comparison) {
  const PositionsSettings& settings = comparison.settings;
  nlohmann::json json{{"characters", comparison.characters}, {"predicted", comparison.predicted},
                      {"sequences", comparison.sequences},   {"seeds", settings.seeds},
                      {"context", settings.context},         {"length", settings.length},
                      {"text_steps", settings.text_steps},   {"copy_steps", settings.copy_steps},
                      {"layers", settings.model.layers},     {"d_model", settings.model.d_model},
                      {"heads", settings.model.heads},       {"results", nlohmann::json::array()}};
  for (const PositionsResult& result : comparison.results) {
    json["results"].push_back({{"positions", result.positions},
                               {"text_parameters", result.text_parameters},
                               {"copy_parameters", result.copy_parameters},
                               {"loss", json_of(result.loss)},
                               {"symbol_accuracy", json_of(result.symbol_accuracy)},
                               {"exact_match", json_of(result.exact_match)}});
  }
  return json;
}

std::string to_markdown(const PositionsComparison& comparison) {
  const PositionsSettings& settings = comparison.settings;
  const auto& text = &PositionsResult::text_parameters;
  const auto& copy = &PositionsResult::copy_parameters;
  const std::string spread =
      settings.seeds > 1 ? "; means ± the sample deviation" : ", which tells little";
  return fmt::format(
             "# Positions compared\n\nlayers {}, d_model {}, heads {}, seeds {}{}. – : the "
             "positions end before.\n\n",
             settings.model.layers, settings.model.d_model, settings.model.heads, settings.seeds,
             spread) +
         fmt::format(
             "## Text: loss in nats a character\n\nTrained for {} steps on sequences of {} "
             "characters; the same {} characters are predicted at every\nlength, the last {} of "
             "each sequence, so that only how much of the past is seen differs.\n\n",
             settings.text_steps, settings.context, comparison.predicted, settings.context / 2) +
         score_table(comparison, kLossScore, text) +
         fmt::format(
             "\n## Copying: symbols repeated, in %\n\nTrained for {} steps on 1 to {} symbols; {} "
             "new sequences at each length. By chance: {:.1f}.\n\n",
             settings.copy_steps, settings.length, comparison.sequences, 100.0 / 16) +
         score_table(comparison, kSymbolScore, copy) +
         "\n## Copying: sequences without a mistake, in %\n\n" +
         score_table(comparison, kSequenceScore, copy) +
         "\n## Places\n\nBy the mean; equal means share a place.\n\n" + places_table(comparison);
}

Figure positions_figure(const PositionsComparison& comparison, Theme theme) {
  const PositionsSettings& settings = comparison.settings;
  Figure figure{
      .title = "Positions beyond the length of training",
      .note = fmt::format("Seeds: {}. A curve ends where its positions end: learned ones at "
                          "the length of training.",
                          settings.seeds),
      .columns = 2,
      .theme = theme};
  figure.panels.push_back(
      curves_of(comparison, kLossScore,
                {.title = fmt::format("Text, trained at {}: the same characters, more of the past",
                                      settings.context),
                 .x_title = "characters in a sequence",
                 .y_title = "loss, nats",
                 .has_log_x = true,
                 .has_names_at_ends = true}));
  figure.panels.push_back(
      curves_of(comparison, kSymbolScore,
                {.title = fmt::format("Copying, trained up to {}", settings.length),
                 .x_title = "symbols to repeat",
                 .y_title = "symbols repeated, %",
                 .y_low = 0,
                 .y_high = 100,
                 .has_names_at_ends = true}));
  return figure;
}

}  // namespace heed::cli
