// Trains translators that differ only in their attention; the results as plain data, for reports
// and figures.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/tasks/score.h"
#include "heed/train/translation_settings.h"
#include "heed/train/translator.h"
#include "heed/train/translator_training.h"
#include "heed/viz/figure.h"

namespace heed::cli {

// The alignment of one model on one sentence.
struct ReportedAlignment {
  std::vector<std::string> source;     // tokens
  std::vector<std::string> target;     // tokens, as written
  std::vector<std::string> reference;  // tokens of the correct translation
  Tensor<float> weights;               // [num_heads, target, source]; empty without attention
};

// One attention and its measurements.
struct ComparedModel {
  std::string attention;  // one of train::kAttentionNames
  std::int64_t d_model = 0;
  std::int64_t parameters = 0;
  std::vector<train::EpochResult> epochs;     // the learning curve
  std::size_t best = 0;                       // index in epochs of the kept model
  double seconds_per_epoch = 0;               // median of the training time
  double tokens_per_second = 0;               // target tokens, median of the epochs
  tasks::TranslationScore test;               // including scores by source length
  std::vector<ReportedAlignment> alignments;  // on the same sentences for all models
};

struct ComparisonReport {
  train::TranslationSettings settings;  // of all models, except for attention and d_model
  std::string task;                     // a description
  std::int64_t examples = 0;            // training examples
  int threads = 0;
  std::vector<ComparedModel> models;
};

nlohmann::json to_json(const ComparisonReport& report);  // without the alignments
nlohmann::json alignments_json(const ComparisonReport& report);
std::string table_csv(const ComparisonReport& report);
std::string learning_curves_csv(const ComparisonReport& report);
std::string bleu_by_length_csv(const ComparisonReport& report);
// Returns a report in Markdown.
std::string to_markdown(const ComparisonReport& report);

// Draws validation BLEU against epochs, a curve for each attention.
Figure learning_curves_figure(const ComparisonReport& report);

// Draws test BLEU against the source length, a curve for each attention. It shows the bottleneck of
// a model without attention.
Figure bleu_by_length_figure(const ComparisonReport& report);

// Draws both figures side by side.
Figure report_figure(const ComparisonReport& report);

// Draws the alignment of one sentence: the mean of the heads. The model must have attention and
// have written at least one token.
Figure alignment_figure(const ComparedModel& model, std::size_t sentence);

// Returns the d_model with which a translator of this attention has about `target` parameters:
// even, and a multiple of the heads.
std::int64_t matching_d_model(const train::TranslatorSettings& model,
                              const train::VocabularySizes& sizes, std::int64_t target);

// Trains one translator after the other with the same corpus, seed and epochs. Saves each run in a
// folder of its name in `folder`, unless that is empty. `sentences` are the test examples whose
// alignments are kept.
ComparisonReport compare(const train::TranslationSettings& settings, const tasks::Corpus& corpus,
                         const std::vector<std::string>& attentions,
                         const std::filesystem::path& folder, std::int64_t sentences);

}  // namespace heed::cli
