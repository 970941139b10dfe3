#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "heed/viz/attention_figure.h"
#include "heed/viz/chart.h"
#include "train/run_settings.h"
#include "translation/comparison.h"
#include "translation/shared.h"

namespace heed::cli {

namespace {

nlohmann::json model_json(const ComparedModel& model) {
  nlohmann::json epochs = nlohmann::json::array();
  for (const train::EpochResult& epoch : model.epochs) epochs.push_back(to_json(epoch));
  return {
      {"attention", model.attention},
      {"d_model", model.d_model},
      {"parameters", model.parameters},
      {"seconds_per_epoch", model.seconds_per_epoch},
      {"tokens_per_second", model.tokens_per_second},
      {"best_epoch", model.epochs[model.best].epoch},
      {"validation",
       {{"bleu", model.epochs[model.best].bleu}, {"exact_match", model.epochs[model.best].exact}}},
      {"test", to_json(model.test)},
      {"epochs", epochs}};
}

nlohmann::json weights_json(const Tensor<float>& weights) {
  nlohmann::json heads = nlohmann::json::array();
  for (std::int64_t head = 0; weights.rank() == 3 && head < weights.extent(0); ++head) {
    nlohmann::json rows = nlohmann::json::array();
    for (std::int64_t row = 0; row < weights.extent(1); ++row) {
      rows.push_back(weights.view().select(0, head).select(0, row).elements());
    }
    heads.push_back(std::move(rows));
  }
  return heads;
}

// The scores of each group of lengths, one per model, in the order of lengths.
using Groups = std::map<std::int64_t, std::vector<const tasks::LengthScore*>>;

Groups groups_of(const ComparisonReport& report) {
  Groups groups;
  for (const ComparedModel& model : report.models) {
    for (const tasks::LengthScore& group : model.test.by_length) {
      groups[group.min_length].push_back(&group);
    }
  }
  return groups;
}

std::string row(const std::vector<std::string>& cells) {
  return fmt::format("| {} |\n", fmt::join(cells, " | "));
}

std::string heading(const std::vector<std::string>& cells) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) line += i == 0 ? "---|" : "--:|";
  return row(cells) + line + '\n';
}

std::string markdown_table(const ComparisonReport& report) {
  std::string text = heading({"attention", "d_model", "parameters", "s/epoch", "tokens/s",
                              "validation BLEU", "exact match", "test BLEU", "exact match"});
  for (const ComparedModel& model : report.models) {
    const train::EpochResult& best = model.epochs[model.best];
    text += row({model.attention, std::to_string(model.d_model), std::to_string(model.parameters),
                 fmt::format("{:.1f}", model.seconds_per_epoch),
                 fmt::format("{:.0f}", model.tokens_per_second), fmt::format("{:.2f}", best.bleu),
                 fmt::format("{:.1f} %", 100 * best.exact),
                 fmt::format("{:.2f}", model.test.bleu.score),
                 fmt::format("{:.1f} %", 100 * model.test.exact)});
  }
  return text;
}

template <class Value>
std::string markdown_by_length(const ComparisonReport& report, const Value& value) {
  std::vector<std::string> names{"source length", "examples"};
  for (const ComparedModel& model : report.models) names.push_back(model.attention);
  std::string text = heading(names);
  for (const auto& [length, scores] : groups_of(report)) {
    std::vector<std::string> cells{lengths_of(*scores.front()),
                                   std::to_string(scores.front()->count)};
    for (const tasks::LengthScore* group : scores) {
      cells.push_back(fmt::format("{:.1f}", value(*group)));
    }
    text += row(cells);
  }
  return text;
}

}  // namespace

nlohmann::json to_json(const ComparisonReport& report) {
  nlohmann::json models = nlohmann::json::array();
  for (const ComparedModel& model : report.models) models.push_back(model_json(model));
  return {{"format", "heed.comparison"},
          {"version", 1},
          {"task", report.task},
          {"examples", report.examples},
          {"threads", report.threads},
          {"settings", to_json(report.settings)},
          {"models", models}};
}

nlohmann::json alignments_json(const ComparisonReport& report) {
  nlohmann::json models = nlohmann::json::array();
  for (const ComparedModel& model : report.models) {
    nlohmann::json sentences = nlohmann::json::array();
    for (const ReportedAlignment& alignment : model.alignments) {
      sentences.push_back({{"source", alignment.source},
                           {"target", alignment.target},
                           {"reference", alignment.reference},
                           {"weights", weights_json(alignment.weights)}});
    }
    models.push_back({{"attention", model.attention}, {"sentences", sentences}});
  }
  return {{"format", "heed.alignments"}, {"version", 1}, {"models", models}};
}

std::string table_csv(const ComparisonReport& report) {
  std::string text =
      "attention,d_model,parameters,seconds_per_epoch,tokens_per_second,best_epoch,validation_bleu,"
      "validation_exact_match,test_bleu,test_exact_match\n";
  for (const ComparedModel& model : report.models) {
    const train::EpochResult& best = model.epochs[model.best];
    text += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", model.attention, model.d_model,
                        model.parameters, model.seconds_per_epoch, model.tokens_per_second,
                        best.epoch, best.bleu, best.exact, model.test.bleu.score, model.test.exact);
  }
  return text;
}

std::string learning_curves_csv(const ComparisonReport& report) {
  std::string text = "attention,epoch,loss,validation_bleu,validation_exact_match\n";
  for (const ComparedModel& model : report.models) {
    for (const train::EpochResult& epoch : model.epochs) {
      text += fmt::format("{},{},{},{},{}\n", model.attention, epoch.epoch, epoch.loss, epoch.bleu,
                          epoch.exact);
    }
  }
  return text;
}

std::string bleu_by_length_csv(const ComparisonReport& report) {
  std::string text = "attention,min_length,max_length,count,bleu,exact_match\n";
  for (const ComparedModel& model : report.models) {
    for (const tasks::LengthScore& group : model.test.by_length) {
      text += fmt::format("{},{},{},{},{},{}\n", model.attention, group.min_length,
                          group.max_length, group.count, group.bleu, group.exact);
    }
  }
  return text;
}

std::string to_markdown(const ComparisonReport& report) {
  const train::TranslationSettings& settings = report.settings;
  return fmt::format(
             "# Attentions compared: {}\n\n"
             "{} examples, {} epochs in batches of {}, learning rate {}, seed {}, {} thread{}; "
             "d_model is chosen so that all have about as many parameters. The model of the best "
             "validation epoch is tested.\n\n",
             report.task, report.examples, settings.epochs.epochs, settings.training.batch,
             settings.training.learning_rate, settings.training.seed, report.threads,
             report.threads == 1 ? "" : "s") +
         markdown_table(report) + "\n## Test BLEU by source length\n\n" +
         markdown_by_length(report, [](const tasks::LengthScore& group) { return group.bleu; }) +
         "\n## Test exact match by source length, in percent\n\n" +
         markdown_by_length(report,
                            [](const tasks::LengthScore& group) { return 100 * group.exact; });
}

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
