// What several verbs about translation share: options, training with progress, scores, alignments.
#pragma once

#include <CLI/App.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/train/translation_settings.h"
#include "heed/train/translator.h"
#include "heed/train/translator_scores.h"
#include "heed/train/translator_training.h"
#include "heed/viz/attention_figure.h"

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

// Calls train::train_translator() with progress on stderr. Throws Interrupted when Ctrl-C ended it.
train::TranslationRun train_translator_shown(train::Translator& translator,
                                             const tasks::Corpus& corpus,
                                             const train::RunPlace& place);

// Returns for example "6 to 10".
std::string lengths_of(const tasks::LengthScore& group);

nlohmann::json to_json(const tasks::TranslationScore& score);

// Averages alignment [num_heads, tokens, src_len] to [tokens, src_len].
Tensor<float> mean_of_heads(const Tensor<float>& alignment);

// Draws the source on the x axis and the target on the y axis. The labels and titles of the axes in
// `options` are replaced.
Figure alignment_figure(const Tensor<float>& weights, const std::vector<std::string>& source,
                        const std::vector<std::string>& target, AttentionFigureOptions options);

}  // namespace heed::cli
