// What every `heed train` has in common: options, the folder of a run, and the run itself.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "heed/nn/module.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/trainer.h"
#include "heed/nn/variable.h"
#include "train/progress.h"
#include "train/settings.h"

namespace heed::cli {

// The options of every task.
struct TrainArguments {
  TrainingSettings training;
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

// Where a run is kept; nowhere when the folder is empty.
struct RunFolder {
  std::filesystem::path path;
  bool is_resumed = false;

  std::filesystem::path checkpoint() const;
  std::filesystem::path model() const;
};

// Makes the folder of --save, which must hold neither a run nor a model, or finds that of --resume.
RunFolder open_run(const TrainArguments& arguments);
RunFolder new_run(const std::filesystem::path& folder);

// The settings that the checkpoint of a resumed run holds.
nlohmann::json read_settings(const RunFolder& folder, const std::string& task);

// The loss of a batch, and how many items it is made of, for the progress bar.
struct StepLoss {
  nn::Variable<> loss;
  std::int64_t items;
};

// For a task that remembers something from step to step: it also keeps its own model, for the last
// one need not be the best.
class BetweenSteps {
 public:
  BetweenSteps() = default;
  virtual ~BetweenSteps() = default;
  BetweenSteps(const BetweenSteps&) = delete;
  BetweenSteps& operator=(const BetweenSteps&) = delete;

  // Called after each step, before a checkpoint.
  virtual void after_step(const nn::TrainingStep& done, TrainingProgress& progress) = 0;
  // Whether no further step is wanted.
  virtual bool is_over() const = 0;
  // All of it that later steps depend on, for the checkpoint, and from there.
  virtual std::string memory() const = 0;
  virtual void recall(const std::string& memory) = 0;
};

// One task's part in a run.
struct TrainingTask {
  nn::Module<>& model;
  // Of a batch that depends on nothing but how many steps are done and default_generator().
  std::function<StepLoss(std::int64_t step)> loss;
  std::string unit;         // of items
  nlohmann::json settings;  // "task", "training", and what is needed to make the model again
  BetweenSteps* between = nullptr;
};

// The learning rates of every training: warm-up, then a cosine.
nn::WarmupCosine learning_schedule(const TrainingSettings& training);

// Trains with AdamW, warm-up and cosine, saves, and shows progress on stderr. Throws Interrupted
// when Ctrl-C ended it, after saving.
void train(const TrainingTask& task, const RunFolder& folder);

}  // namespace heed::cli
