// Trains translators that differ only in their attention.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heed/train/translator.h"
#include "translation/comparison_report.h"

namespace heed::cli {

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
