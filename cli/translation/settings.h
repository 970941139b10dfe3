// What describes a translator: its data, its model and its training, as they stand in its files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "train/settings.h"

namespace heed::cli {

inline constexpr const char* kTranslateTask = "translate";
inline constexpr const char* kParallelText = "parallel-text";
inline const std::vector<std::string> kTaskNames{"number-words", "dates", "copy", "reverse"};
inline const std::vector<std::string> kAttentionNames{"none",    "additive", "dot",
                                                      "general", "concat",   "multihead"};
inline const std::vector<std::string> kLanguageNames{"en", "fr", "de"};

// What is learned: one of kTaskNames, or kParallelText.
struct CorpusSettings {
  std::string task = "number-words";
  std::string from = "en";       // of number-words
  std::string to = "fr";         // of number-words
  std::int64_t max_length = 30;  // of copy and reverse
  std::int64_t examples = 10'000;
  std::int64_t held_out = 1000;  // for validation, and as many for the test
  std::uint64_t seed = 0;
  std::string units = "words";  // of parallel text
  std::string files;            // of parallel text: their checksum
};

// A model, and the vocabularies that belong to it.
struct TranslatorSettings {
  std::string attention = "additive";
  std::int64_t layers = 1;
  std::int64_t d_model = 128;
  std::int64_t heads = 4;  // of multihead
  double dropout = 0.1;
  std::int64_t max_len = 100;     // of a target in tokens
  std::string source_vocabulary;  // their checksums
  std::string target_vocabulary;
};

// When a run ends.
struct EpochSettings {
  std::int64_t epochs = 20;
  // So many epochs without a better validation BLEU end the run, and so does a perfect one; 0: none
  // does.
  std::int64_t patience = 5;
};

struct TranslationSettings {
  TrainingSettings training{.steps = 0, .batch = 64};  // steps follow from the epochs
  EpochSettings epochs;
  CorpusSettings corpus;
  TranslatorSettings model;
};

// Throws UsageError when numbers are out of range or do not fit together.
void check(const TranslationSettings& settings);

nlohmann::json to_json(const TranslationSettings& settings);

// What `file` says, checked. Throws std::runtime_error naming it when it is none of ours.
TranslationSettings translation_settings(const nlohmann::json& json,
                                         const std::filesystem::path& file);

// "number-words, English to French"
std::string describe(const CorpusSettings& corpus);

}  // namespace heed::cli
