// A model that translates, with the vocabularies it reads and writes, and the folder it lies in.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "heed/nn/seq2seq.h"
#include "heed/nn/seq2seq_training.h"
#include "heed/tasks/corpus.h"
#include "heed/tasks/vocabulary.h"
#include "translation/settings.h"

namespace heed::cli {

// Two files whose lines belong together, or none.
using ParallelFiles = std::vector<std::string>;

// The corpus that the settings describe. Parallel text is read from the files, which must be those
// that the settings name, if they name some. Throws std::runtime_error when they are not.
tasks::Corpus make_corpus(const CorpusSettings& settings, const ParallelFiles& files);
// Tells these files from others.
std::string checksum_of(const ParallelFiles& files);

struct VocabularySizes {
  std::int64_t source;
  std::int64_t target;
};

struct Translator {
  TranslationSettings settings;
  tasks::Vocabulary source;
  tasks::Vocabulary target;
  std::unique_ptr<nn::Seq2Seq<>> model;

  std::vector<nn::SequencePair> encode(const std::vector<tasks::Example>& examples) const;
  VocabularySizes sizes() const { return {source.size(), target.size()}; }
  bool has_attention() const { return settings.model.attention != "none"; }
};

// A new model, drawn from default_generator().
std::unique_ptr<nn::Seq2Seq<>> make_model(const TranslatorSettings& model,
                                          const VocabularySizes& sizes);

// An untrained translator of the corpus, drawn from settings.training.seed. What follows from the
// corpus (vocabularies, longest target, steps) is filled in.
Translator new_translator(const TranslationSettings& settings, const tasks::Corpus& corpus);

// The description of a translator in its folder: settings and both vocabularies.
void write_description(const std::filesystem::path& folder, const Translator& translator);
// From the description, untrained. Throws std::runtime_error when its files do not belong together.
Translator read_description(const std::filesystem::path& folder);
// With the model that training kept.
Translator load_translator(const std::filesystem::path& folder);

}  // namespace heed::cli
