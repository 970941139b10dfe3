#include "translation/comparison_figures.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "heed/viz/attention_figure.h"
#include "heed/viz/chart.h"
#include "translation/alignment.h"

namespace heed::cli {

Figure learning_curves_figure(const ComparisonReport& report) {
  std::vector<Curve> curves;
  for (const ComparedModel& model : report.models) {
    Curve curve{.name = model.attention, .has_markers = true};
    for (const train::EpochResult& epoch : model.epochs) {
      curve.x.push_back(static_cast<double>(epoch.epoch));
      curve.y.push_back(epoch.bleu);
    }
    curves.push_back(std::move(curve));
  }
  return curves_figure(curves, {.title = "BLEU while learning",
                                .note = report.task,
                                .x_title = "epoch",
                                .y_title = "validation BLEU",
                                .y_low = 0,
                                .y_high = 100});
}

Figure bleu_by_length_figure(const ComparisonReport& report) {
  std::vector<Curve> curves;
  for (const ComparedModel& model : report.models) {
    Curve curve{.name = model.attention, .has_markers = true};
    for (const tasks::LengthScore& group : model.test.by_length) {
      curve.x.push_back(static_cast<double>(group.min_length + group.max_length) / 2);
      curve.y.push_back(group.bleu);
    }
    curves.push_back(std::move(curve));
  }
  return curves_figure(curves, {.title = "BLEU against length",
                                .note = report.task,
                                .x_title = "source tokens",
                                .y_title = "test BLEU",
                                .y_low = 0,
                                .y_high = 100});
}

Figure report_figure(const ComparisonReport& report) {
  Figure figure{.title = "Attentions compared", .note = report.task, .columns = 2};
  for (Figure& part : std::array{learning_curves_figure(report), bleu_by_length_figure(report)}) {
    figure.panels.push_back(std::move(part.panels.front()));
    figure.panels.back().title = part.title;
  }
  return figure;
}

Figure alignment_figure(const ComparedModel& model, std::size_t sentence) {
  const ReportedAlignment& alignment = model.alignments.at(sentence);
  return alignment_figure(mean_of_heads(alignment.weights), alignment.source, alignment.target,
                          {.title = fmt::format("Alignment: {}", model.attention)});
}

}  // namespace heed::cli
