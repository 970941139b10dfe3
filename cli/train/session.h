// What every `heed train` has in common: options, the folder of a run, and the run itself.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/nn/module.h"
#include "heed/nn/variable.h"
#include "train/settings.h"

namespace heed::cli {

// The options of every task.
struct TrainArguments {
  TrainingSettings training;
  std::string save;
  std::string resume;
  bool as_json = false;
};

// Adds them, with the defaults that `arguments` has. --resume excludes all that would change what
// is resumed: give it the task's own such options with exclude_from_resume().
void add_training_options(CLI::App& verb, TrainArguments& arguments);
void exclude_from_resume(CLI::App& verb, CLI::Option* option);

// Where a run is kept; nowhere when the folder is empty.
struct RunFolder {
  std::filesystem::path path;
  bool is_resumed = false;

  std::filesystem::path checkpoint() const;
  std::filesystem::path model() const;
};

// Makes the folder of --save, which must not hold a run, or finds that of --resume.
RunFolder open_run(const TrainArguments& arguments);

// The settings that the checkpoint of a resumed run holds.
nlohmann::json read_settings(const RunFolder& folder, const std::string& task);

// One task's part in a run.
struct TrainingTask {
  nn::Module<>& model;
  std::function<nn::Variable<>()> loss;  // of a batch drawn from default_generator()
  std::int64_t items_per_step;           // for the progress bar
  std::string unit;
  nlohmann::json settings;  // "task", "training", and what is needed to make the model again
};

// Trains with AdamW, warm-up and cosine, saves, and shows progress on stderr. Throws Interrupted
// when Ctrl-C ended it, after saving.
void train(const TrainingTask& task, const RunFolder& folder);

}  // namespace heed::cli
