/// Training runs with a folder: they can be stopped at any moment and resumed with the same result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/nn/module.h"
#include "heed/nn/trainer.h"
#include "heed/nn/variable.h"
#include "heed/train/training_settings.h"

namespace heed { inline namespace v0 { namespace train {

/// The folder of a run; an empty path stores nothing.
struct HEED_API RunFolder {
  std::filesystem::path path;
  bool is_resumed = false;  ///< true: the run continues from the folder's checkpoint

  std::filesystem::path checkpoint() const;  ///< path/checkpoint.safetensors
  std::filesystem::path model() const;       ///< path/model.safetensors
};

/// Creates the folder of a new run. @throws IoError when it cannot be created, or contains a run or
/// a model.
HEED_API RunFolder new_run(const std::filesystem::path& folder);

/// The loss of a batch, or of a rank's part of it, as a mean over its items. A rank without a part
/// has 0 items and no loss or, for divided sequences, a loss over 0 items.
struct StepLoss {
  nn::Variable<> loss;
  std::int64_t items;
};

/// The share of a batch that a rank learns from: the sequences first … first + count − 1.
struct BatchShare {
  std::int64_t first;
  std::int64_t count;
};

/// Divides a batch as evenly as possible: the first ranks have one sequence more. The whole batch
/// where `ranks` is null.
HEED_API BatchShare share_of_batch(std::int64_t batch, const Communicator* ranks);

/// Receives the progress of a run, and may end it.
class HEED_API RunObserver {
 public:
  RunObserver() = default;
  virtual ~RunObserver();
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;

  /// Called before the first step, with the number of earlier steps and of all steps.
  /// @param unit the name of items, for example "tokens"
  virtual void on_begin(std::int64_t steps_done, std::int64_t steps, const std::string& unit);
  /// Called after each step. @param items the number of items of the step, on all ranks together
  virtual void on_step(const nn::TrainingStep& done, std::int64_t items);
  /// Called with a line of text to print, for example an epoch's result.
  virtual void say(const std::string& line);
  /// True if the run is to end here; it can be resumed later. Called after each step.
  virtual bool wants_end() const { return false; }
};

/// The part of a task that has a state between steps. Such a task also saves its model itself,
/// because the last model need not be the best.
class HEED_API BetweenSteps {
 public:
  BetweenSteps() = default;
  virtual ~BetweenSteps();
  BetweenSteps(const BetweenSteps&) = delete;
  BetweenSteps& operator=(const BetweenSteps&) = delete;

  /// Called after each step, before a checkpoint.
  virtual void after_step(const nn::TrainingStep& done, RunObserver& observer) = 0;
  /// True if no further step is needed: early stopping.
  virtual bool is_over() const = 0;
  /// The state that later steps depend on, to be saved in the checkpoint, and its restoration.
  virtual std::string memory() const = 0;
  virtual void recall(const std::string& memory) = 0;
};

/// A task for run_training().
struct TrainingTask {
  nn::Module<>& model;
  /// The loss of a batch, which depends only on the number of earlier steps and
  /// default_generator().
  std::function<StepLoss(std::int64_t step)> loss;
  TrainingSettings training;
  std::string unit;      ///< the name of a step's items: "tokens"
  std::string settings;  ///< JSON for checkpoint and model, from which the model can be created
  BetweenSteps* between = nullptr;
  /// The ranks that train together, each with share_of_batch(); null: one process.
  Communicator* ranks = nullptr;
  /// True if ranks instead have a part of the tokens of each sequence, as for
  /// nn::TrainerOptions::is_context_parallel.
  bool is_context_parallel = false;
};

/// The end of a run.
struct RunOutcome {
  bool is_finished = false;     ///< false: the observer ended it
  std::int64_t steps_done = 0;  ///< all finished steps, including those before a resumption
};

/// Trains with AdamW and learning_schedule(), clipping gradients to norm 1. It saves a checkpoint
/// every training.save_every steps and at the end and, unless the task saves its own, the model. It
/// checks first that the folder can be written.
///
/// With ranks, all call it with the same task, the same folder and observers of their own; only
/// rank 0 reads and writes the folder, and the run ends when any rank's observer ends it.
/// @throws InvalidArgument as nn::Trainer, and for ranks with a task that has BetweenSteps; IoError
/// when the folder cannot be written.
HEED_API RunOutcome run_training(const TrainingTask& task, const RunFolder& folder);
HEED_API RunOutcome run_training(const TrainingTask& task, const RunFolder& folder,
                                 RunObserver& observer);

}}}  // namespace heed::v0::train
