// heed evaluate: the quality of a translator.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "arguments.h"
#include "heed/core/parallel.h"
#include "train/progress.h"
#include "train/session.h"
#include "translation/shared.h"
#include "verbs.h"

namespace heed::cli {

namespace {

struct EvaluateArguments {
  std::string model;
  std::string split;
  train::ParallelFiles files;
  std::int64_t beam = 1;
  int threads = 0;
  bool as_json = false;
};

// The evaluated examples and their name for the report.
struct Examples {
  std::string name;
  std::vector<tasks::Example> examples;
};

std::vector<tasks::Example> all_of(const tasks::Corpus& corpus) {
  std::vector<tasks::Example> all = corpus.train;
  all.insert(all.end(), corpus.validation.begin(), corpus.validation.end());
  all.insert(all.end(), corpus.test.begin(), corpus.test.end());
  return all;
}

// Returns the validation or test part of the corpus that the model was trained on, or all examples
// of other files.
Examples examples_of(const train::CorpusSettings& trained, const EvaluateArguments& arguments) {
  const bool has_files = !arguments.files.empty();
  const bool are_own = has_files && trained.files == train::checksum_of(arguments.files);
  if (has_files && !are_own) {
    if (!arguments.split.empty()) {
      throw UsageError("--split is for what the model was trained on, not for other files");
    }
    train::CorpusSettings other = trained;
    other.task = train::kParallelText;
    other.files = "";
    return {fmt::format("all of '{}' and '{}'", arguments.files[0], arguments.files[1]),
            all_of(train::make_corpus(other, arguments.files))};
  }
  const tasks::Corpus corpus = train::make_corpus(trained, arguments.files);
  if (arguments.split == "validation") return {"validation", corpus.validation};
  return {"test", corpus.test};
}

void print_json(const Examples& examples, const train::Translator& translator,
                const tasks::TranslationScore& score) {
  nlohmann::json json = to_json(score);
  json["examples"] = examples.name;
  json["count"] = examples.examples.size();
  json["task"] = describe(translator.settings.corpus);
  json["attention"] = translator.settings.model.attention;
  json["parameters"] = translator.model->num_parameters();
  std::cout << json.dump(-1, ' ', true) << '\n';
}

void print(const Examples& examples, const train::Translator& translator,
           const tasks::TranslationScore& score) {
  std::cout << fmt::format(
      "task      {}\n"
      "model     {} parameters, attention {}\n"
      "examples  {}: {}\n"
      "BLEU      {:.2f}\n"
      "exact     {:.1f} %\n"
      "\n"
      "source length  examples    BLEU   exact\n",
      describe(translator.settings.corpus), translator.model->num_parameters(),
      translator.settings.model.attention, examples.name, examples.examples.size(),
      score.bleu.score, 100 * score.exact);
  for (const tasks::LengthScore& group : score.by_length) {
    std::cout << fmt::format("{:>13}  {:>8}  {:>6.2f}  {:>4.1f} %\n", lengths_of(group),
                             group.count, group.bleu, 100 * group.exact);
  }
}

void run_evaluate(const EvaluateArguments& arguments) {
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  train::Translator translator = train::load_translator(arguments.model, kOptionNames);
  const Examples examples = examples_of(translator.settings.corpus, arguments);
  tasks::TranslationScore result;
  {
    WritingProgress progress(examples.examples.size());
    result = train::score(translator, examples.examples,
                          {.beam = arguments.beam,
                           .progress = [&progress](std::size_t done) { progress.report(done); }});
  }
  if (arguments.as_json) {
    print_json(examples, translator, result);
  } else {
    print(examples, translator, result);
  }
}

}  // namespace

void add_evaluate(CLI::App& command) {
  CLI::App* verb = command.add_subcommand(
      "evaluate", "Measure a model of `heed train translate`: BLEU, exact match, by length");
  const auto arguments = std::make_shared<EvaluateArguments>();
  add_model_option(*verb, arguments->model);
  add_option(*verb, "--split", arguments->split,
             "Which part of what it was trained on: test, if not given")
      ->check(one_of({"validation", "test"}))
      ->type_name("validation|test");
  add_parallel_option(*verb, arguments->files);
  add_beam_option(*verb, arguments->beam);
  add_threads_option(*verb, arguments->threads);
  add_flag(*verb, "--json", arguments->as_json, "Print one JSON object instead");
  verb->footer(
      "The test examples of a generated task are generated again from the model's settings.\n"
      "Of files that the model was not trained on all lines are evaluated.");
  verb->callback([arguments] { run_evaluate(*arguments); });
}

}  // namespace heed::cli
