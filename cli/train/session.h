// What every `heed train` has in common: options, the folder of a run, and the run itself.
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
  int threads = 0;  // all there are
};

// Adds them, with the defaults that `arguments` has. --resume excludes all that would change what
// is resumed: give it the task's own such options with exclude_from_resume().
void add_training_options(CLI::App& verb, TrainArguments& arguments);
void exclude_from_resume(CLI::App& verb, CLI::Option* option);

// add_training_options() is these, --steps and --json: for a task that counts in other units.
void add_run_options(CLI::App& verb, TrainArguments& arguments);
void add_threads_option(CLI::App& verb, int& threads);

// Makes the folder of --save, which must hold neither a run nor a model, or finds that of --resume.
// Of several ranks only the first looks at folders.
train::RunFolder open_run(const TrainArguments& arguments);

// The settings that the checkpoint of a resumed run holds.
nlohmann::json read_settings(const train::RunFolder& folder, const std::string& task);

// Writes the description of a translator into the folder of its run.
void describe_run(const train::RunFolder& folder, const train::Translator& translator);

// After a run of `task`: what it wrote is noted. Throws Interrupted when Ctrl-C ended it.
void finish_run(const std::string& task, const train::TrainingSettings& training,
                const train::RunFolder& folder, const train::RunOutcome& outcome);

// Trains with progress on stderr. Throws Interrupted when Ctrl-C ended it, after saving.
void run_shown(const train::TrainingTask& task, const train::RunFolder& folder);

}  // namespace heed::cli
