// The results of comparing attentions as plain data, for reports and figures.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/tasks/score.h"
#include "heed/train/translation_settings.h"
#include "heed/train/translator_training.h"

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

}  // namespace heed::cli
