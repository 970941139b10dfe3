#include "translation/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "arguments.h"
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
  add_option(verb, "--model", model, "The folder that `heed train translate --save` named")
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

}  // namespace heed::cli
