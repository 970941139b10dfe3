// Trains translators that differ in their attention alone.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "heed/train/translator.h"
#include "translation/comparison_report.h"

namespace heed::cli {

// The d_model with which a translator of this attention has about as many parameters as `target`:
// a multiple of the heads, and even.
std::int64_t matching_d_model(const train::TranslatorSettings& model,
                              const train::VocabularySizes& sizes, std::int64_t target);

// One translator after the other with the same corpus, seed and epochs. `folder` gets one run for
// each, under its name; where it is empty none is kept. `sentences` are test examples whose
// alignments are kept.
ComparisonReport compare(const train::TranslationSettings& settings, const tasks::Corpus& corpus,
                         const std::vector<std::string>& attentions,
                         const std::filesystem::path& folder, std::int64_t sentences);

}  // namespace heed::cli
