/// Training runs that can be stopped at any moment and resumed with the same bits.
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

/// The options of a run.
struct TrainerOptions {
  /// The learning rate of each step; the run has schedule.total_steps of them.
  WarmupCosine schedule = {};
  /// Gradients are clipped to this norm.
  double max_grad_norm = 1;
  /// The file with all that is needed to resume the run. Empty: nothing is saved.
  std::filesystem::path checkpoint = {};
  /// The number of steps between checkpoints; there is also one after the last step.
  std::int64_t save_every = 100;
  /// Further entries of the checkpoint, for example the model's settings.
  Metadata notes = {};
  /// The ranks that train the model together, each with its part of every batch; null: alone.
  Communicator* ranks = nullptr;
  /// True if these parts are tokens of the same sequences (context_parallel.h), so that a rank's
  /// loss depends on tokens of others: then every rank runs the whole loss and backward pass, and
  /// ranks without a part have a loss of weight 0.
  bool is_context_parallel = false;
};

/// The result of a step.
struct TrainingStep {
  std::int64_t step = 0;  ///< steps that are done: 1 after the first
  double loss = 0;
  double grad_norm = 0;  ///< before clipping
  double weight = 1;     ///< of the batch: the sum over the parts of all ranks
};

/// The loss of a batch, or of a rank's part of it.
template <class T>
struct BatchLoss {
  BatchLoss(Variable<T> mean, double over = 1)  // NOLINT(google-explicit-constructor)
      : loss(std::move(mean)), weight(over) {}

  /// One element. If weight is 0: undefined, or a value that depends on tokens of other ranks.
  Variable<T> loss;
  double weight;  ///< the number of items, e.g. tokens, over which the loss is a mean
};

/// The training loop: loss, gradients, clipping, optimiser, checkpoint.
///
/// A checkpoint is one safetensors file: the model ("model.<name>"), the optimiser
/// ("optimizer.<name>"), default_generator() ("random"), the step (metadata "step") and the notes.
/// A new checkpoint replaces the old one as a whole. As long as the losses depend only on the model
/// and default_generator(), a run that is killed and resumed ends with the same bits as an
/// uninterrupted one.
///
/// With ranks, each has a trainer of the same model, and all call the same functions. Each computes
/// the loss of its part of a batch; gradients are summed as by mean_over_ranks(), those that are
/// final while others are still computed, so that the losses are those of one process with the
/// whole batch, within rounding. Rank 0's checkpoint, which the others need not be able to read,
/// its parameters and its default_generator() are used by all. If a rank throws, all throw the same
/// exception, as run_on_all(). Each rank must draw the same numbers for the same batch; only where
/// a rank has no part do the generators of the others continue from rank 0's.
template <class T = float>
class HEED_API Trainer {
 public:
  /// The loss of one batch.
  using Loss = std::function<BatchLoss<T>()>;
  /// Called after each step; returning false stops the run, on any rank all of them.
  using AfterStep = std::function<bool(const TrainingStep&)>;

  /// A trainer of `model` by `optimizer`, which must both outlive it.
  /// @throws InvalidArgument when save_every or the number of steps is not positive.
  Trainer(Module<T>& model, Optimizer<T>& optimizer, TrainerOptions options);

  /// Loads model, optimiser, default_generator() and step from the checkpoint.
  /// @throws InvalidArgument naming the file when it is not a checkpoint of this run; model,
  /// optimiser, generator and step are then unchanged.
  /// @throws FormatError, IoError as read_safetensors().
  void resume();

  /// Trains, in training mode, until all steps are done (returns true) or `after_step` returns
  /// false (returns false); in both cases the checkpoint is written first.
  /// @throws InvalidArgument when a loss is not finite; the checkpoint is then the previous one.
  /// @throws IoError as write_safetensors().
  bool run(const Loss& loss, const AfterStep& after_step = {});

  /// Sets the note with this name in later checkpoints.
  void set_note(const std::string& name, std::string text) {
    options_.notes[name] = std::move(text);
  }

  /// Writes the checkpoint, if the options have a file.
  void save() const;

  /// The number of finished steps.
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
