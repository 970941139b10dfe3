// The common parts of every `heed train`: options, the folder of a run, and the run itself.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/train/training_run.h"
#include "heed/train/translator.h"
#include "train/progress.h"
#include "train/settings.h"

namespace heed::cli {

// The options of every task.
struct TrainArguments {
  train::TrainingSettings training;
  std::string save;
  std::string resume;
  bool as_json = false;
  int threads = 0;  // 0: all processors
};

// Adds the options, with the defaults in `arguments`. --resume excludes all options that would
// change the resumed run: call exclude_from_resume() for those of the task.
void add_training_options(CLI::App& verb, TrainArguments& arguments);
void exclude_from_resume(CLI::App& verb, CLI::Option* option);

// The parts of add_training_options() without --steps and --json, for a task that counts in other
// units.
void add_run_options(CLI::App& verb, TrainArguments& arguments);
void add_threads_option(CLI::App& verb, int& threads);

// Makes the folder of --save, which must hold neither a run nor a model, or opens that of --resume.
// Of several ranks only the first accesses folders.
train::RunFolder open_run(const TrainArguments& arguments);

// Returns the settings in the checkpoint of a resumed run.
nlohmann::json read_settings(const train::RunFolder& folder, const std::string& task);

// Writes the description of a translator into the folder of its run.
void describe_run(const train::RunFolder& folder, const train::Translator& translator);

// Ends a run of `task`: records its files. Throws Interrupted when Ctrl-C ended it.
void finish_run(const std::string& task, const train::TrainingSettings& training,
                const train::RunFolder& folder, const train::RunOutcome& outcome);

// Trains with progress on stderr. Throws Interrupted when Ctrl-C ended it, after saving.
void run_shown(const train::TrainingTask& task, const train::RunFolder& folder);

}  // namespace heed::cli
