// The map of layers and heads.
#include <fmt/format.h>

#include <filesystem>

#include "heads/head_report.h"
#include "heed/viz/attention_figure.h"
#include "heed/viz/terminal.h"

namespace heed::cli {

namespace {

// The panels of the map: one matrix of scores per pattern.
struct HeadMap {
  std::vector<std::string> names;
  std::vector<float> scores;

  // Skips a pattern with no rows: its scores of 0 would claim that no head follows it.
  void add(const inspect::ScoredTexts& scored, std::size_t pattern, const std::string& name) {
    if (!has_rows(scored, pattern)) return;
    names.push_back(name);
    for (const auto& heads : scored.layers) {
      for (const inspect::HeadMeasures& head : heads) {
        scores.push_back(static_cast<float>(head.patterns[pattern].score));
      }
    }
  }

 private:
  static bool has_rows(const inspect::ScoredTexts& scored, std::size_t pattern) {
    for (const auto& heads : scored.layers) {
      for (const inspect::HeadMeasures& head : heads) {
        if (head.patterns[pattern].rows > 0) return true;
      }
    }
    return false;
  }
};

HeadMap map_of(const HeadReport& report) {
  HeadMap map;
  const auto& text = report.scores.text;
  for (std::size_t i = 0; i < text.patterns.size(); ++i) {
    if (text.patterns[i].name == inspect::duplicate_token().name) continue;
    map.add(text, i, text.patterns[i].name);
  }
  const auto& repeated = report.scores.repeated;
  for (std::size_t i = 0; i < repeated.patterns.size(); ++i) {
    map.add(repeated, i, repeated.patterns[i].name + ", repeated");
  }
  return map;
}

}  // namespace

Figure figure_of(const HeadReport& report, Theme theme) {
  const HeadMap map = map_of(report);
  const Tensor<float> scores({static_cast<std::int64_t>(map.names.size()), report.config.num_layers,
                              report.config.num_heads},
                             map.scores);
  const std::filesystem::path path(report.model);
  AttentionFigureOptions options;
  const std::string name =
      path.has_filename() ? path.filename().string() : path.parent_path().filename().string();
  options.title = fmt::format("What the heads of {} do", name);
  options.note = "the share of a head's attention that follows the pattern, where it has a choice";
  options.query_title = "layer";
  options.key_title = "head";
  options.panels = map.names;
  options.scale_max = 1;
  options.decimals = -1;
  options.theme = theme;
  Figure figure = attention_figure(scores, options);
  for (Panel& panel : figure.panels) {
    if (panel.color_bar) panel.color_bar->axis.label = "score";
  }
  return figure;
}

}  // namespace heed::cli
