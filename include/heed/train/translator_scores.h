/// Translations of examples and their scores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/search.h"
#include "heed/tasks/score.h"
#include "heed/train/translator.h"

namespace heed { inline namespace v0 { namespace train {

/// The options of the search for translations.
struct WritingOptions {
  std::int64_t beam = 1;  ///< 1: greedy
  /// Called from time to time with the number of finished translations.
  std::function<void(std::size_t)> progress = {};
};

/// The translation of each source. It has an alignment only if `beam` is more than 1.
HEED_API std::vector<nn::Hypothesis<float>> write_all(Translator& translator,
                                                      const std::vector<nn::SequencePair>& pairs,
                                                      const WritingOptions& options = {});

/// BLEU and exact match of the translations of the examples' sources, also in up to six groups of
/// source lengths. Words and characters that are not in the vocabularies count as wrong.
/// @throws std::runtime_error as Translator::encode().
HEED_API tasks::TranslationScore score(Translator& translator,
                                       const std::vector<tasks::Example>& examples,
                                       const WritingOptions& options = {});

}}}  // namespace heed::v0::train
