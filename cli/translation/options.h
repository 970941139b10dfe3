// Options that several translation verbs share.
#pragma once

#include <CLI/App.hpp>
#include <string>

#include "heed/train/translation_settings.h"
#include "heed/train/translator.h"

namespace heed::cli {

// Adds --task, --from, --to, --max-length, --examples, --held-out.
void add_corpus_options(CLI::App& verb, train::CorpusSettings& corpus);
// Add --parallel-text, and --units for verbs that describe a corpus.
void add_parallel_option(CLI::App& verb, train::ParallelFiles& files);
void add_units_option(CLI::App& verb, train::CorpusSettings& corpus);
// Adds --layers, --d-model, --heads, --dropout.
void add_size_options(CLI::App& verb, train::TranslatorSettings& model);
// Adds --model, which is required.
void add_model_option(CLI::App& verb, std::string& model);
void add_beam_option(CLI::App& verb, std::int64_t& beam);

// Completes `corpus` where files were given. Throws UsageError when given options do not belong to
// the task.
void choose_corpus(const CLI::App& verb, const train::ParallelFiles& files,
                   train::CorpusSettings& corpus);

}  // namespace heed::cli
