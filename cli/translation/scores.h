// What a translator writes, and how good it is.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/nn/search.h"
#include "heed/tasks/score.h"
#include "translation/translator.h"

namespace heed::cli {

struct WritingOptions {
  std::int64_t beam = 1;  // 1: greedy
  // Called now and then with how many are written.
  std::function<void(std::size_t)> progress = {};
};

// What the model writes for each source. Without alignments unless `beam` is more than 1.
std::vector<nn::Hypothesis<float>> write_all(Translator& translator,
                                             const std::vector<nn::SequencePair>& pairs,
                                             const WritingOptions& options = {});

// BLEU and exact match of what the model writes for the examples' sources. Words and characters
// that are not in the vocabularies count as wrong. Up to six groups of source lengths.
tasks::TranslationScore score(Translator& translator, const std::vector<tasks::Example>& examples,
                              const WritingOptions& options = {});

// "6 to 10"
std::string lengths_of(const tasks::LengthScore& group);

nlohmann::json to_json(const tasks::TranslationScore& score);

}  // namespace heed::cli
