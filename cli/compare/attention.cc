// heed compare without the name of a comparison: the effect of attention on one task with one
// training budget.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "arguments.h"
#include "compare/compare_verbs.h"
#include "heed/core/parallel.h"
#include "io/folder.h"
#include "markdown_text.h"
#include "output_files.h"
#include "picture_file.h"
#include "train/session.h"
#include "train/settings.h"
#include "translation/comparison.h"
#include "translation/shared.h"
#include "verbs.h"

namespace heed::cli {

namespace fs = std::filesystem;

namespace {

struct CompareArguments {
  train::TranslationSettings settings;
  std::vector<std::string> attentions = train::kAttentionNames;
  train::ParallelFiles files;
  std::string out;
  std::int64_t sentences = 3;
  int threads = 0;
};

constexpr const char* kReport = "report.json";
constexpr const char* kTable = "table.csv";
constexpr const char* kCurves = "learning_curves.csv";
constexpr const char* kByLength = "bleu_by_length.csv";
constexpr const char* kAlignments = "alignments.json";
constexpr const char* kMarkdown = "report.md";
constexpr const char* kPage = "report.html";
constexpr const char* kCurvesPicture = "learning_curves.svg";
constexpr const char* kByLengthPicture = "bleu_by_length.svg";
constexpr const char* kCompareOut = "--out";

std::string alignment_name(std::size_t sentence, const std::string& attention) {
  return fmt::format("alignment_{}_{}.svg", sentence + 1, attention);
}

// Returns the pictures of a report by name.
std::map<std::string, Figure> figures_of(const ComparisonReport& report) {
  std::map<std::string, Figure> figures{{kCurvesPicture, learning_curves_figure(report)},
                                        {kByLengthPicture, bleu_by_length_figure(report)}};
  for (const ComparedModel& model : report.models) {
    for (std::size_t i = 0; i < model.alignments.size(); ++i) {
      if (model.alignments[i].weights.empty()) continue;
      figures.emplace(alignment_name(i, model.attention), alignment_figure(model, i));
    }
  }
  return figures;
}

constexpr std::array kNumbers{kReport, kTable, kCurves, kByLength, kAlignments, kMarkdown, kPage};

// Returns the folder --out. Throws where it holds a file that would be overwritten.
fs::path new_folder(const CompareArguments& arguments) {
  io::make_folder(arguments.out);
  std::vector<std::string> names(kNumbers.begin(), kNumbers.end());
  names.insert(names.end(), {kCurvesPicture, kByLengthPicture});
  for (const std::string& attention : arguments.attentions) {
    names.push_back(attention);  // the folder of one model
    for (std::int64_t i = 0; i < arguments.sentences; ++i) {
      names.push_back(alignment_name(static_cast<std::size_t>(i), attention));
    }
  }
  io::refuse_existing(arguments.out, names);
  return arguments.out;
}

void write(const ComparisonReport& report, const fs::path& folder) {
  const std::map<std::string, Figure> figures = figures_of(report);
  OutputFiles files;
  for (const char* name : kNumbers) files.reserve(name, folder / name);
  for (const auto& [name, figure] : figures) files.reserve(name, folder / name);
  files.write_text(kReport, to_json(report).dump(2) + '\n');
  files.write_text(kTable, table_csv(report));
  files.write_text(kCurves, learning_curves_csv(report));
  files.write_text(kByLength, bleu_by_length_csv(report));
  files.write_text(kAlignments, alignments_json(report).dump() + '\n');
  files.write_text(kMarkdown, to_markdown(report));
  files.write_text(kPage, figure_page(report_figure(report)));
  for (const auto& [name, figure] : figures) {
    files.write_text(name, render_figure(figure, FigureFormat::kSvg));
  }
  files.commit();
}

// Returns the picture that --out shows of a report when it names a file.
Picture picture_of(const ComparisonReport& report) {
  return {.figure = [&report] { return report_figure(report); },
          .json = [&report] { return to_json(report).dump(2) + '\n'; }};
}

void run_compare(const CLI::App& verb, CompareArguments& arguments) {
  train::TranslationSettings& settings = arguments.settings;
  settings.corpus.seed = settings.training.seed;
  choose_corpus(verb, arguments.files, settings.corpus);
  check_given(settings);
  if (arguments.threads > 0) set_num_threads(arguments.threads);
  const bool is_file = is_picture(arguments.out);
  const ComparisonReport none;
  if (is_file) {
    check_picture(kCompareOut, arguments.out, picture_of(none));
  } else {
    check_fonts();
  }
  OutputFiles file;
  if (is_file) file.reserve(kCompareOut, arguments.out);
  const fs::path folder = is_file ? fs::path() : new_folder(arguments);
  const tasks::Corpus corpus = train::make_corpus(settings.corpus, arguments.files);
  const ComparisonReport report =
      compare(settings, corpus, arguments.attentions, folder, arguments.sentences);
  std::cout << for_stdout(to_markdown(report));
  if (is_file) {
    write_picture(file, kCompareOut, arguments.out, picture_of(report));
    return file.commit();
  }
  write(report, folder);
  std::cout << fmt::format("\nThe report, its numbers and the models are in '{}'.\n",
                           folder.string());
}

}  // namespace

void add_compare_attention(CLI::App& compare) {
  CLI::App* verb = &compare;
  const auto arguments = std::make_shared<CompareArguments>();
  train::TranslationSettings& settings = arguments->settings;
  settings.epochs.patience = 0;  // all models train for the same number of epochs
  add_option(*verb, kCompareOut, arguments->out,
             "The folder for report and models, made if not there; or a file that ends in " +
                 picture_endings(picture_of({})) +
                 ", for the report's picture or numbers alone: no model is kept")
      ->required()
      ->type_name("DIR|FILE");
  add_list(*verb, "--attention", arguments->attentions, one_of(train::kAttentionNames),
           "Which kinds, joined by commas; all")
      ->type_name("NAMES");
  add_corpus_options(*verb, settings.corpus);
  add_parallel_option(*verb, arguments->files);
  add_units_option(*verb, settings.corpus);
  add_size_options(*verb, settings.model);
  const auto add = [&](const std::string& name, auto& value, const std::string& text,
                       const std::string& type) {
    add_option(*verb, name, value, text)->capture_default_str()->type_name(type);
  };
  add("--epochs", settings.epochs.epochs, "How often all examples are seen", "N");
  add("--batch", settings.training.batch, "Examples in a batch", "N");
  add("--lr", settings.training.learning_rate, "The largest learning rate", "NUMBER");
  add("--seed", settings.training.seed, "Draws examples, parameters and batches", "N");
  add_option(*verb, "--sentences", arguments->sentences, "Test examples whose alignments are kept")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000).description(""))
      ->type_name("N");
  add_threads_option(*verb, arguments->threads);
  verb->footer(
      "--d-model is that of dot; the others get the one with which they have about as\n"
      "many parameters. DIR gets report.json, report.md, table.csv, learning_curves.csv,\n"
      "bleu_by_length.csv, alignments.json, pictures of these as .svg and report.html,\n"
      "and a folder for each model, which `heed translate` and `heed evaluate` read.");
  verb->callback([verb, arguments] {
    if (verb->get_subcommands().empty()) run_compare(*verb, *arguments);
  });
}

}  // namespace heed::cli
