#include "translation/shared.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "arguments.h"
#include "train/interrupt.h"
#include "train/session.h"
#include "verbs.h"

namespace heed::cli {

namespace {

CLI::Option* add_name(CLI::App& verb, const std::string& option, std::string& value,
                      const std::vector<std::string>& names, const std::string& text) {
  return add_option(verb, option, value, text)
      ->capture_default_str()
      ->check(one_of(names))
      ->type_name(fmt::format("{}", fmt::join(names, "|")));
}

template <class T>
CLI::Option* add_number(CLI::App& verb, const std::string& option, T& value,
                        const std::string& text) {
  return add_option(verb, option, value, text)->capture_default_str()->type_name("N");
}

void refuse(const CLI::App& verb, std::initializer_list<const char*> options,
            const std::string& reason) {
  for (const char* option : options) {
    if (verb.count(option) > 0) throw UsageError(fmt::format("{} {}", option, reason));
  }
}

}  // namespace

void add_corpus_options(CLI::App& verb, train::CorpusSettings& corpus) {
  add_name(verb, "--task", corpus.task, train::kTaskNames,
           "What is learned, from generated examples");
  add_name(verb, "--from", corpus.from, train::kLanguageNames, "The language of number-words");
  add_name(verb, "--to", corpus.to, train::kLanguageNames, "The language they become");
  add_number(verb, "--max-length", corpus.max_length, "The longest sequence of copy and reverse");
  add_number(verb, "--examples", corpus.examples, "Examples to learn from");
  add_number(verb, "--held-out", corpus.held_out,
             "Examples to choose the best epoch by, and as many for the test");
}

void add_parallel_option(CLI::App& verb, train::ParallelFiles& files) {
  add_option(verb, "--parallel-text", files,
             "Two files in UTF-8, a sentence a line, whose lines belong together")
      ->expected(2)
      ->type_name("SOURCE TARGET");
}

void add_units_option(CLI::App& verb, train::CorpusSettings& corpus) {
  add_name(verb, "--units", corpus.units, {"words", "characters"}, "A token of --parallel-text");
}

void add_size_options(CLI::App& verb, train::TranslatorSettings& model) {
  add_number(verb, "--layers", model.layers, "Layers of LSTM in the encoder and in the decoder");
  add_number(verb, "--d-model", model.d_model, "Numbers per token, even");
  add_number(verb, "--heads", model.heads, "Heads of multihead attention");
  add_option(verb, "--dropout", model.dropout, "The share of activations left out in training")
      ->capture_default_str()
      ->type_name("P");
}

void add_model_option(CLI::App& verb, std::string& model) {
  add_option(
      verb, "--model", model,
      "The folder that `heed train translate --save` named; for `heed translate` also one of T5, "
      "BART or Marian")
      ->required()
      ->type_name("DIR");
}

void add_beam_option(CLI::App& verb, std::int64_t& beam) {
  add_option(verb, "--beam", beam, "Hypotheses that are followed at once; 1: the likeliest token")
      ->capture_default_str()
      ->check(CLI::Range(1, 1000).description(""))
      ->type_name("N");
}

void choose_corpus(const CLI::App& verb, const train::ParallelFiles& files,
                   train::CorpusSettings& corpus) {
  if (!files.empty()) {
    refuse(verb, {"--task", "--from", "--to", "--max-length", "--examples", "--held-out"},
           "does not go with --parallel-text");
    corpus.task = train::kParallelText;
    corpus.files = train::checksum_of(files);
    return;
  }
  const std::string reason = "is not for --task " + corpus.task;
  if (corpus.task != "number-words") refuse(verb, {"--from", "--to"}, reason);
  if (corpus.task != "copy" && corpus.task != "reverse") refuse(verb, {"--max-length"}, reason);
}

train::TranslationRun train_translator_shown(train::Translator& translator,
                                             const tasks::Corpus& corpus,
                                             const train::RunPlace& place) {
  const InterruptGuard guard;
  train::TranslationRun run;
  {
    TrainingProgress progress;
    run = train::train_translator(translator, corpus, place, progress);
  }
  finish_run(train::kTranslateTask, translator.settings.training, place.folder, run.outcome);
  return run;
}

std::string lengths_of(const tasks::LengthScore& group) {
  if (group.min_length == group.max_length) return std::to_string(group.min_length);
  return fmt::format("{} to {}", group.min_length, group.max_length);
}

nlohmann::json to_json(const tasks::TranslationScore& score) {
  nlohmann::json by_length = nlohmann::json::array();
  for (const tasks::LengthScore& group : score.by_length) {
    by_length.push_back({{"min_length", group.min_length},
                         {"max_length", group.max_length},
                         {"count", group.count},
                         {"bleu", group.bleu},
                         {"exact_match", group.exact}});
  }
  return {{"bleu", score.bleu.score},
          {"precisions", score.bleu.precisions},
          {"brevity_penalty", score.bleu.brevity_penalty},
          {"hypothesis_length", score.bleu.hypothesis_length},
          {"reference_length", score.bleu.reference_length},
          {"exact_match", score.exact},
          {"by_length", by_length}};
}

Tensor<float> mean_of_heads(const Tensor<float>& alignment) {
  Tensor<float> mean({alignment.extent(1), alignment.extent(2)});
  const auto share = 1 / static_cast<float>(alignment.extent(0));
  for (std::int64_t h = 0; h < alignment.extent(0); ++h) {
    const auto of_head = to_tensor(alignment.view().select(0, h));
    float* sum = mean.data();
    for (const float weight : of_head.elements()) *sum++ += share * weight;
  }
  return mean;
}

Figure alignment_figure(const Tensor<float>& weights, const std::vector<std::string>& source,
                        const std::vector<std::string>& target, AttentionFigureOptions options) {
  options.queries = target;
  options.keys = source;
  options.query_title = "written";
  options.key_title = "source";
  return attention_figure(weights, options);
}

}  // namespace heed::cli
