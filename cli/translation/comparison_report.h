// What comparing attentions gave, as plain data: for the files of a report and the figures drawn
// from it.
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

// Where one model looked while it wrote one sentence.
struct ReportedAlignment {
  std::vector<std::string> source;     // tokens
  std::vector<std::string> target;     // tokens, as written
  std::vector<std::string> reference;  // tokens, as they should be
  Tensor<float> weights;               // [num_heads, target, source]; empty without attention
};

// One attention, and all that was measured of it.
struct ComparedModel {
  std::string attention;  // one of train::kAttentionNames
  std::int64_t d_model = 0;
  std::int64_t parameters = 0;
  std::vector<train::EpochResult> epochs;  // the learning curve
  std::size_t best = 0;                    // the epoch whose model was kept, an index into epochs
  double seconds_per_epoch = 0;            // training alone, the median
  double tokens_per_second = 0;            // of targets, the median of the epochs
  tasks::TranslationScore test;            // by source length too
  std::vector<ReportedAlignment> alignments;  // of the same sentences for all models
};

struct ComparisonReport {
  train::TranslationSettings settings;  // of all models, but for attention and d_model
  std::string task;                     // for readers
  std::int64_t examples = 0;            // that were learned from
  int threads = 0;
  std::vector<ComparedModel> models;
};

nlohmann::json to_json(const ComparisonReport& report);  // all but the alignments
nlohmann::json alignments_json(const ComparisonReport& report);
std::string table_csv(const ComparisonReport& report);
std::string learning_curves_csv(const ComparisonReport& report);
std::string bleu_by_length_csv(const ComparisonReport& report);
// For readers: Markdown.
std::string to_markdown(const ComparisonReport& report);

}  // namespace heed::cli
