/// A training run with a folder: it can be stopped at any moment and goes on to the same result.
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

/// Where a run is kept; nowhere when the path is empty.
struct HEED_API RunFolder {
  std::filesystem::path path;
  bool is_resumed = false;  ///< the folder has a checkpoint, with which the run goes on

  std::filesystem::path checkpoint() const;  ///< path/checkpoint.safetensors
  std::filesystem::path model() const;       ///< path/model.safetensors
};

/// Makes the folder of a new run. @throws IoError when it cannot be made, or holds a run or a
/// model.
HEED_API RunFolder new_run(const std::filesystem::path& folder);

/// The loss of a batch, a mean over its items. Of a rank's part of a batch where there are ranks:
/// with 0 items and no loss where it has none, or, of divided sequences, a loss of no items.
struct StepLoss {
  nn::Variable<> loss;
  std::int64_t items;
};

/// The sequences of a batch that a rank learns from: first … first + count − 1.
struct BatchShare {
  std::int64_t first;
  std::int64_t count;
};

/// Divides a batch as evenly as it can be: the first ranks have one sequence more. All of it where
/// `ranks` is null.
HEED_API BatchShare share_of_batch(std::int64_t batch, const Communicator* ranks);

/// Is told how a run goes, and may end it.
class HEED_API RunObserver {
 public:
  RunObserver() = default;
  virtual ~RunObserver();
  RunObserver(const RunObserver&) = delete;
  RunObserver& operator=(const RunObserver&) = delete;

  /// Before the first step that is done: how many were done before, of how many.
  /// @param unit what items are: "tokens", say
  virtual void on_begin(std::int64_t steps_done, std::int64_t steps, const std::string& unit);
  /// After each step. @param items how many the step had, on all ranks together
  virtual void on_step(const nn::TrainingStep& done, std::int64_t items);
  /// A line for a reader: an epoch's result, say.
  virtual void say(const std::string& line);
  /// Whether the run is to end here, to be resumed another time. Asked after each step.
  virtual bool wants_end() const { return false; }
};

/// For a task that remembers something from step to step: it also keeps its own model, for the last
/// one need not be the best.
class HEED_API BetweenSteps {
 public:
  BetweenSteps() = default;
  virtual ~BetweenSteps();
  BetweenSteps(const BetweenSteps&) = delete;
  BetweenSteps& operator=(const BetweenSteps&) = delete;

  /// Called after each step, before a checkpoint.
  virtual void after_step(const nn::TrainingStep& done, RunObserver& observer) = 0;
  /// Whether no further step is wanted: early stopping.
  virtual bool is_over() const = 0;
  /// All of it that later steps depend on, for the checkpoint, and from there.
  virtual std::string memory() const = 0;
  virtual void recall(const std::string& memory) = 0;
};

/// One task's part in a run.
struct TrainingTask {
  nn::Module<>& model;
  /// Of a batch that depends on nothing but how many steps are done and default_generator().
  std::function<StepLoss(std::int64_t step)> loss;
  TrainingSettings training;
  std::string unit;      ///< what the items of a step are: "tokens"
  std::string settings;  ///< JSON, for checkpoint and model: what is needed to make the model again
  BetweenSteps* between = nullptr;
  /// The ranks that train together, each with share_of_batch(); null: alone.
  Communicator* ranks = nullptr;
  /// Whether these have instead a part of the tokens of each sequence, as
  /// nn::TrainerOptions::is_context_parallel.
  bool is_context_parallel = false;
};

/// How a run ended.
struct RunOutcome {
  bool is_finished = false;     ///< false: the observer ended it
  std::int64_t steps_done = 0;  ///< of all, those before a resumption too
};

/// Trains with AdamW and learning_schedule(), clipping gradients to norm 1, and saves: a checkpoint
/// every training.save_every steps and at the end, and, where the task does not keep its own, the
/// model. A folder that cannot be written is found out before the work.
///
/// With ranks, all call it with the same task, the same folder and observers of their own; rank 0
/// alone reads and writes the folder, and when one rank's observer wants the end, the run ends.
/// @throws InvalidArgument as nn::Trainer, and for ranks with a task that remembers something
/// between steps; IoError when the folder cannot be written.
HEED_API RunOutcome run_training(const TrainingTask& task, const RunFolder& folder);
HEED_API RunOutcome run_training(const TrainingTask& task, const RunFolder& folder,
                                 RunObserver& observer);

}}}  // namespace heed::v0::train
