/// A training run that can be stopped at any moment and continued to the same bits.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include "heed/core/config.h"
#include "heed/distributed/communicator.h"
#include "heed/nn/module.h"
#include "heed/nn/optimizer.h"
#include "heed/nn/rank_mean.h"
#include "heed/nn/state_file.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// How a run goes on.
struct TrainerOptions {
  /// The learning rate of each step; the run has schedule.total_steps of them.
  WarmupCosine schedule = {};
  /// Gradients are clipped to this norm.
  double max_grad_norm = 1;
  /// The file that holds all the run needs to go on. Empty: nothing is saved.
  std::filesystem::path checkpoint = {};
  /// A checkpoint is written after so many steps, and after the last.
  std::int64_t save_every = 100;
  /// What the checkpoint says beside: the model's settings, say.
  Metadata notes = {};
  /// The ranks that train the model together, each with its part of every batch; null: alone.
  Communicator* ranks = nullptr;
  /// Whether these parts are tokens of the same sequences (context_parallel.h), so that a rank's
  /// loss depends on the tokens of others: then every rank goes through all of the loss and of the
  /// backward pass, and those without a part have a loss of weight 0.
  bool is_context_parallel = false;
};

/// What a step did.
struct TrainingStep {
  std::int64_t step = 0;  ///< how many are done: 1 after the first
  double loss = 0;
  double grad_norm = 0;  ///< before clipping
  double weight = 1;     ///< of the batch: of the parts of all ranks
};

/// The loss of a batch, or of the part of one that a rank has.
template <class T>
struct BatchLoss {
  BatchLoss(Variable<T> mean, double over = 1)  // NOLINT(google-explicit-constructor)
      : loss(std::move(mean)), weight(over) {}

  /// One element. Where weight is 0 nothing, or what leads to the tokens of the other ranks.
  Variable<T> loss;
  double weight;  ///< the loss is a mean over so many things: tokens, say
};

/// Runs the loop that every training has: loss, gradients, clipping, optimiser, checkpoint.
///
/// A checkpoint is one safetensors file: the model ("model.<name>"), the optimiser
/// ("optimizer.<name>"), default_generator() ("random"), the step (metadata "step") and the notes.
/// It replaces the one before whole or not at all. As long as the losses depend on nothing but the
/// model and default_generator(), a run that is killed and resumed ends with the same bits as one
/// that was left alone.
///
/// With ranks, each has a trainer of the same model, and all call the same functions. Each computes
/// the loss of its part of a batch; gradients are added up as mean_over_ranks() does, those that
/// are final while others are computed, so that the losses are those of one process with the whole
/// batch, to rounding. What rank 0 has counts: its
/// checkpoint, which the others need not see, its parameters, its default_generator(). A rank that
/// throws has all throw the same, as run_on_all() does. Each rank is to draw the same numbers for
/// the same batch: only where one has no part do the others' generators go on from rank 0's.
template <class T = float>
class HEED_API Trainer {
 public:
  /// The loss of one batch.
  using Loss = std::function<BatchLoss<T>()>;
  /// Called after each step; false stops the run, with ranks on any of them.
  using AfterStep = std::function<bool(const TrainingStep&)>;

  /// Both must outlive the trainer.
  /// @throws InvalidArgument when save_every or the number of steps is not positive.
  Trainer(Module<T>& model, Optimizer<T>& optimizer, TrainerOptions options);

  /// Takes model, optimiser, default_generator() and step from the checkpoint.
  /// @throws InvalidArgument naming the file when it is no checkpoint of such a run; model,
  /// optimiser, generator and step are then as before.
  /// @throws FormatError, IoError as read_safetensors().
  void resume();

  /// Trains, in training mode, until all steps are done (true) or `after_step` says stop (false);
  /// both times the checkpoint is written before it returns.
  /// @throws InvalidArgument when a loss is not finite; the checkpoint is then the last one before.
  /// @throws IoError as write_safetensors().
  bool run(const Loss& loss, const AfterStep& after_step = {});

  /// What the checkpoints say beside under this name, from now on.
  void set_note(const std::string& name, std::string text) {
    options_.notes[name] = std::move(text);
  }

  /// Writes the checkpoint, if one is named.
  void save() const;

  /// How many steps are done.
  std::int64_t step() const noexcept { return step_; }

 private:
  TrainingStep train_step(const Loss& loss);
  BatchLoss<T> part_of_batch(const Loss& loss) const;
  BatchMean learn_alone(const Loss& loss) const;
  BatchMean learn_together(const Loss& loss) const;
  void read_checkpoint();
  void write_checkpoint() const;
  void share_state();
  bool goes_on(const TrainingStep& done, const AfterStep& after_step) const;

  Module<T>& model_;
  Optimizer<T>& optimizer_;
  TrainerOptions options_;
  std::int64_t step_ = 0;
};

extern template class Trainer<float>;
extern template class Trainer<double>;

}}}  // namespace heed::v0::nn
