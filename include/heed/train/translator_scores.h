/// What a translator writes, and how good it is.
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

/// How translations are looked for.
struct WritingOptions {
  std::int64_t beam = 1;  ///< 1: greedy
  /// Called now and then with how many are written.
  std::function<void(std::size_t)> progress = {};
};

/// What the model writes for each source. Without alignments unless `beam` is more than 1.
HEED_API std::vector<nn::Hypothesis<float>> write_all(Translator& translator,
                                                      const std::vector<nn::SequencePair>& pairs,
                                                      const WritingOptions& options = {});

/// BLEU and exact match of what the model writes for the examples' sources. Words and characters
/// that are not in the vocabularies count as wrong. Up to six groups of source lengths.
/// @throws std::runtime_error as Translator::encode().
HEED_API tasks::TranslationScore score(Translator& translator,
                                       const std::vector<tasks::Example>& examples,
                                       const WritingOptions& options = {});

}}}  // namespace heed::v0::train
