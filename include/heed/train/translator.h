/// Translators: a model, its vocabularies, and the folder that stores them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/nn/search.h"
#include "heed/nn/seq2seq.h"
#include "heed/nn/seq2seq_training.h"
#include "heed/tasks/corpus.h"
#include "heed/tasks/vocabulary.h"
#include "heed/train/translation_settings.h"

namespace heed { inline namespace v0 { namespace train {

/// The paths of two files whose lines are pairs, or none.
using ParallelFiles = std::vector<std::string>;

/// The corpus that the settings describe. Parallel text is read from the files, whose checksum must
/// be that of the settings, if these have one.
/// @throws std::runtime_error when it is not; IoError when a file cannot be read.
HEED_API tasks::Corpus make_corpus(const CorpusSettings& settings, const ParallelFiles& files = {});
/// A checksum of the files' contents. @throws IoError
HEED_API std::string checksum_of(const ParallelFiles& files);

/// The number of tokens of two vocabularies.
struct VocabularySizes {
  std::int64_t source;
  std::int64_t target;
};

/// A model with its settings and vocabularies.
struct HEED_API Translator {
  TranslationSettings settings;
  tasks::Vocabulary source;
  tasks::Vocabulary target;
  std::unique_ptr<nn::Seq2Seq<>> model;

  /// The examples as token ids. @throws std::runtime_error when a text has more than 4000 tokens,
  /// the number of positions.
  std::vector<nn::SequencePair> encode(const std::vector<tasks::Example>& examples) const;
  VocabularySizes sizes() const { return {source.size(), target.size()}; }
  bool has_attention() const { return settings.model.attention != "none"; }
};

/// A new model with parameters from default_generator().
HEED_API std::unique_ptr<nn::Seq2Seq<>> make_model(const TranslatorSettings& model,
                                                   const VocabularySizes& sizes);

/// An untrained translator for the corpus, with parameters drawn from settings.training.seed.
/// Settings that follow from the corpus (vocabularies, longest target, steps) are filled in.
HEED_API Translator new_translator(const TranslationSettings& settings,
                                   const tasks::Corpus& corpus);

/// Writes the description of a translator into its folder: settings.json, source_vocabulary.json
/// and target_vocabulary.json, all of them or none. Files that already have these bytes are left
/// alone. @throws IoError when one has other contents.
HEED_API void write_description(const std::filesystem::path& folder, const Translator& translator);
/// An untrained translator from its description. @param names how messages name settings
/// @throws std::runtime_error when its files contradict each other; FormatError, IoError.
HEED_API Translator read_description(const std::filesystem::path& folder,
                                     SettingNames names = SettingNames::kMembers);
/// A translator with the trained model in model.safetensors. @throws as read_description().
HEED_API Translator load_translator(const std::filesystem::path& folder,
                                    SettingNames names = SettingNames::kMembers);

/// A sentence and its translation.
struct Translation {
  std::vector<std::string> source;   ///< the sentence's tokens, as they are written
  std::vector<std::string> unknown;  ///< those of them that are not in the vocabulary
  std::vector<std::string> target;   ///< the tokens of the translation
  std::string text;
  nn::Hypothesis<float> hypothesis;  ///< log-probability, alignment, whether it is complete
};

/// The best translation that a beam search finds; empty for a sentence without tokens.
/// @throws InvalidArgument when the sentence is not valid UTF-8 or beam is below 1.
HEED_API Translation translate(Translator& translator, const std::string& sentence,
                               std::int64_t beam = 1);

}}}  // namespace heed::v0::train
