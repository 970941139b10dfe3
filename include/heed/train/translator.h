/// A model that translates, with the vocabularies it reads and writes, and the folder it lies in.
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

/// Two files whose lines belong together, or none.
using ParallelFiles = std::vector<std::string>;

/// The corpus that the settings describe. Parallel text is read from the files, which must be those
/// that the settings name, if they name some.
/// @throws std::runtime_error when they are not; IoError when one cannot be read.
HEED_API tasks::Corpus make_corpus(const CorpusSettings& settings, const ParallelFiles& files = {});
/// Tells these files from others. @throws IoError
HEED_API std::string checksum_of(const ParallelFiles& files);

/// How many tokens two vocabularies have.
struct VocabularySizes {
  std::int64_t source;
  std::int64_t target;
};

/// A model and all that belongs to it.
struct HEED_API Translator {
  TranslationSettings settings;
  tasks::Vocabulary source;
  tasks::Vocabulary target;
  std::unique_ptr<nn::Seq2Seq<>> model;

  /// @throws std::runtime_error when a text has more than 4000 tokens, where positions end.
  std::vector<nn::SequencePair> encode(const std::vector<tasks::Example>& examples) const;
  VocabularySizes sizes() const { return {source.size(), target.size()}; }
  bool has_attention() const { return settings.model.attention != "none"; }
};

/// A new model, drawn from default_generator().
HEED_API std::unique_ptr<nn::Seq2Seq<>> make_model(const TranslatorSettings& model,
                                                   const VocabularySizes& sizes);

/// An untrained translator of the corpus, drawn from settings.training.seed. What follows from the
/// corpus (vocabularies, longest target, steps) is filled in.
HEED_API Translator new_translator(const TranslationSettings& settings,
                                   const tasks::Corpus& corpus);

/// Writes the description of a translator into its folder: settings.json, source_vocabulary.json
/// and target_vocabulary.json, all of them or none; nothing where they are there
/// already, to the byte. @throws IoError when one is there with something else.
HEED_API void write_description(const std::filesystem::path& folder, const Translator& translator);
/// From the description, untrained. @param names what messages call settings
/// @throws std::runtime_error when its files do not belong together; FormatError, IoError.
HEED_API Translator read_description(const std::filesystem::path& folder,
                                     SettingNames names = SettingNames::kMembers);
/// With the model that training kept, model.safetensors. @throws as read_description().
HEED_API Translator load_translator(const std::filesystem::path& folder,
                                    SettingNames names = SettingNames::kMembers);

/// A sentence and what a translator makes of it.
struct Translation {
  std::vector<std::string> source;   ///< the sentence's tokens, as it writes them
  std::vector<std::string> unknown;  ///< those of them that the model has never seen
  std::vector<std::string> target;   ///< the tokens that were written
  std::string text;
  nn::Hypothesis<float> hypothesis;  ///< log-probability, alignment, whether it is complete
};

/// The best translation that a beam search finds; of a sentence without tokens nothing.
/// @throws InvalidArgument when the sentence is not valid UTF-8 or beam is below 1.
HEED_API Translation translate(Translator& translator, const std::string& sentence,
                               std::int64_t beam = 1);

}}}  // namespace heed::v0::train
