// heed train translate: a sequence-to-sequence model learns a task.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "arguments.h"
#include "heed/core/parallel.h"
#include "heed/train/translator_scores.h"
#include "ranks.h"
#include "train/run_settings.h"
#include "train/session.h"
#include "translation/shared.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct TrainTranslateArguments {
  TrainArguments train;
  train::TranslationSettings settings;
  train::ParallelFiles files;
  std::string log;
};

// The translator of a resumed run, or a new one, with its corpus.
struct Prepared {
  train::Translator translator;
  tasks::Corpus corpus;
};

Prepared prepare_new(const TrainTranslateArguments& arguments, const train::RunFolder& folder) {
  tasks::Corpus corpus = train::make_corpus(arguments.settings.corpus, arguments.files);
  train::Translator translator = train::new_translator(arguments.settings, corpus);
  if (!folder.path.empty()) describe_run(folder, translator);
  return {std::move(translator), std::move(corpus)};
}

Prepared prepare_resumed(const TrainTranslateArguments& arguments, const train::RunFolder& folder) {
  const auto settings = train::translation_settings(read_settings(folder, train::kTranslateTask),
                                                    folder.checkpoint(), kOptionNames);
  tasks::Corpus corpus = train::make_corpus(settings.corpus, arguments.files);
  train::Translator translator = train::read_description(folder.path, kOptionNames);
  if (to_json(translator.settings) != to_json(settings)) {
    throw std::runtime_error(fmt::format("'{}' and the settings beside it are of different runs",
                                         folder.checkpoint().string()));
  }
  return {std::move(translator), std::move(corpus)};
}

void print(const Prepared& prepared, const train::TranslationRun& run,
           const tasks::TranslationScore& test) {
  const auto& [translator, corpus] = prepared;
  const train::EpochResult& best = run.epochs[run.best];
  std::cout << fmt::format(
      "task   {}: {} examples to learn from\n"
      "model  {} parameters, attention {}\n"
      "best   epoch {} of {}: BLEU {:.2f}, exact match {:.1f} % of {} examples for validation\n"
      "test   BLEU {:.2f}, exact match {:.1f} % of {} examples seen by nobody before\n",
      describe(translator.settings.corpus), corpus.train.size(), translator.model->num_parameters(),
      translator.settings.model.attention, best.epoch, run.epochs.size(), best.bleu,
      100 * best.exact, corpus.validation.size(), test.bleu.score, 100 * test.exact,
      corpus.test.size());
}

void run_translate(const CLI::App& verb, TrainTranslateArguments& arguments) {
  refuse_ranks("train translate");
  train::TranslationSettings& settings = arguments.settings;
  settings.training = arguments.train.training;
  settings.corpus.seed = settings.training.seed;
  if (arguments.train.resume.empty()) choose_corpus(verb, arguments.files, settings.corpus);
  check_given(settings);
  const train::RunFolder folder = open_run(arguments.train);
  Prepared prepared =
      folder.is_resumed ? prepare_resumed(arguments, folder) : prepare_new(arguments, folder);
  const train::TranslationRun run =
      train_translator_shown(prepared.translator, prepared.corpus, {folder, arguments.log, ""});
  print(prepared, run, score(prepared.translator, prepared.corpus.test));
  if (!folder.path.empty()) {
    std::cout << fmt::format("\n`heed translate --model {}` translates with it.\n",
                             folder.path.string());
  }
}

}  // namespace

void add_train_translate(CLI::App& train) {
  CLI::App* verb = train.add_subcommand(
      "translate", "Turn one sequence into another: numbers in words, dates, your own texts");
  const auto arguments = std::make_shared<TrainTranslateArguments>();
  train::TranslationSettings& settings = arguments->settings;
  arguments->train.training = settings.training;
  add_corpus_options(*verb, settings.corpus);
  add_units_option(*verb, settings.corpus);
  add_option(*verb, "--attention", settings.model.attention, "How the decoder looks at the source")
      ->capture_default_str()
      ->check(one_of(train::kAttentionNames))
      ->type_name("none|additive|dot|general|concat|multihead");
  add_size_options(*verb, settings.model);
  add_option(*verb, "--epochs", settings.epochs.epochs, "How often all examples are seen")
      ->capture_default_str()
      ->type_name("N");
  add_option(*verb, "--patience", settings.epochs.patience,
             "So many epochs without a better validation BLEU end the run, and so does a "
             "perfect one; 0: none does")
      ->capture_default_str()
      ->type_name("N");
  const auto describes_run = verb->get_options();
  add_parallel_option(*verb, arguments->files);
  add_run_options(*verb, arguments->train);
  for (const CLI::Option* option : describes_run) {
    if (option->check_lname("help")) continue;
    exclude_from_resume(*verb, verb->get_option(option->get_name()));
  }
  add_option(*verb, "--json", arguments->log, "Also write one JSON object a line for each epoch")
      ->type_name("LOG");
  verb->footer(
      "Each epoch ends with the BLEU of examples that are not learned from; the model of\n"
      "the best epoch is the one that is kept. A resumed run needs its --parallel-text\n"
      "again.");
  verb->callback([verb, arguments] { run_translate(*verb, *arguments); });
}

}  // namespace heed::cli
