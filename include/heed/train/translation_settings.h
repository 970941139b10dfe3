/// What describes a translator: its data, its model and its training, as they stand in its files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/train/training_settings.h"

namespace heed { inline namespace v0 { namespace train {

inline constexpr const char* kTranslateTask = "translate";     ///< what its files call it
inline constexpr const char* kParallelText = "parallel-text";  ///< a CorpusSettings::task
/// The generated tasks that CorpusSettings::task may be.
inline const std::vector<std::string> kTaskNames{"number-words", "dates", "copy", "reverse"};
/// What TranslatorSettings::attention may be.
inline const std::vector<std::string> kAttentionNames{"none",    "additive", "dot",
                                                      "general", "concat",   "multihead"};
/// The languages of number-words.
inline const std::vector<std::string> kLanguageNames{"en", "fr", "de"};

/// What is learned: one of kTaskNames, or kParallelText.
struct CorpusSettings {
  std::string task = "number-words";
  std::string from = "en";       ///< of number-words
  std::string to = "fr";         ///< of number-words
  std::int64_t max_length = 30;  ///< of copy and reverse
  std::int64_t examples = 10'000;
  std::int64_t held_out = 1000;  ///< for validation, and as many for the test
  std::uint64_t seed = 0;
  std::string units = "words";  ///< of parallel text; or "characters"
  std::string files = {};       ///< of parallel text: their checksum
};

/// A model, and the vocabularies that belong to it.
struct TranslatorSettings {
  std::string attention = "additive";  ///< one of kAttentionNames
  std::int64_t layers = 1;
  std::int64_t d_model = 128;
  std::int64_t heads = 4;  ///< of multihead
  double dropout = 0.1;
  std::int64_t max_len = 100;          ///< of a target in tokens
  std::string source_vocabulary = {};  ///< their checksums
  std::string target_vocabulary = {};
};

/// When a run ends.
struct EpochSettings {
  std::int64_t epochs = 20;
  /// So many epochs without a better validation BLEU end the run, and so does a perfect one; 0:
  /// none does.
  std::int64_t patience = 5;
};

/// All of it.
struct TranslationSettings {
  TrainingSettings training{.steps = 0, .batch = 64};  ///< steps follow from the epochs
  EpochSettings epochs = {};
  CorpusSettings corpus = {};
  TranslatorSettings model = {};
};

/// @throws InvalidArgument naming the setting when numbers are out of range or do not fit together,
/// or a name is none of those it may be.
HEED_API void check_settings(const TranslationSettings& settings,
                             SettingNames names = SettingNames::kMembers);

/// In words: "number-words, English to French".
HEED_API std::string describe(const CorpusSettings& corpus);

}}}  // namespace heed::v0::train
