/// The settings of a translator: its data, its model and its training, as its files store them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/train/training_settings.h"

namespace heed { inline namespace v0 { namespace train {

inline constexpr const char* kTranslateTask = "translate";     ///< the task in its files
inline constexpr const char* kParallelText = "parallel-text";  ///< a CorpusSettings::task
/// The generated tasks that are values of CorpusSettings::task.
inline const std::vector<std::string> kTaskNames{"number-words", "dates", "copy", "reverse"};
/// The values of TranslatorSettings::attention.
inline const std::vector<std::string> kAttentionNames{"none",    "additive", "dot",
                                                      "general", "concat",   "multihead"};
/// The languages of number-words.
inline const std::vector<std::string> kLanguageNames{"en", "fr", "de"};

/// The data: one of kTaskNames, or kParallelText.
struct CorpusSettings {
  std::string task = "number-words";
  std::string from = "en";       ///< of number-words
  std::string to = "fr";         ///< of number-words
  std::int64_t max_length = 30;  ///< of copy and reverse
  std::int64_t examples = 10'000;
  std::int64_t held_out = 1000;  ///< examples for validation, and the same number for the test
  std::uint64_t seed = 0;
  std::string units = "words";  ///< of parallel text: "words" or "characters"
  std::string files = {};       ///< of parallel text: the checksum of the files
};

/// The model and the checksums of its vocabularies.
struct TranslatorSettings {
  std::string attention = "additive";  ///< one of kAttentionNames
  std::int64_t layers = 1;
  std::int64_t d_model = 128;
  std::int64_t heads = 4;  ///< of multihead
  double dropout = 0.1;
  std::int64_t max_len = 100;          ///< the most tokens of a target
  std::string source_vocabulary = {};  ///< the checksums of the vocabularies
  std::string target_vocabulary = {};
};

/// The conditions for the end of a run.
struct EpochSettings {
  std::int64_t epochs = 20;
  /// The run ends after this number of epochs without a better validation BLEU, and after a perfect
  /// one; 0: neither ends it.
  std::int64_t patience = 5;
};

/// All settings of a translator.
struct TranslationSettings {
  TrainingSettings training{.steps = 0, .batch = 64};  ///< steps follow from the epochs
  EpochSettings epochs = {};
  CorpusSettings corpus = {};
  TranslatorSettings model = {};
};

/// @throws InvalidArgument naming the setting when numbers are out of range or do not fit together,
/// or a name is not one of its values.
HEED_API void check_settings(const TranslationSettings& settings,
                             SettingNames names = SettingNames::kMembers);

/// A description for readers: "number-words, English to French".
HEED_API std::string describe(const CorpusSettings& corpus);

}}}  // namespace heed::v0::train
