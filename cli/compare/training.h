// Trains the models of a comparison one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "heed/core/random.h"
#include "heed/models/causal_transformer.h"
#include "heed/nn/module.h"
#include "heed/train/token_loss.h"
#include "heed/train/training_run.h"
#include "train/interrupt.h"
#include "train/progress.h"

namespace heed::cli {

// One of this many parts of a text is held out.
inline constexpr std::size_t kHeldOutParts = 4;

inline train::TrainingSettings with_steps(train::TrainingSettings training, std::int64_t steps) {
  training.steps = steps;
  return training;
}

// While an object exists, Ctrl-C ends training after the current step. Progress on stderr counts
// the steps of all models.
class ComparedTraining {
 public:
  ComparedTraining(std::int64_t steps, const std::string& unit) {
    progress_.on_begin(0, steps, unit);
  }

  // Trains as train::run_training() does, without saving. Throws Interrupted when Ctrl-C ended it.
  void train(nn::Module<>& model, const train::TrainingSettings& training,
             const std::function<train::StepLoss()>& loss);
  // Prints a line about a measured model.
  void say(const std::string& line) { progress_.say(line); }

 private:
  InterruptGuard guard_;
  TrainingProgress progress_;
  std::int64_t done_ = 0;  // steps of all models so far
};

inline constexpr train::TrainingSettings kTaskTraining{.batch = 32};
inline constexpr std::int64_t kMeasuredSequences = 256;

// Returns `model` for a task of sequences.
inline models::CausalConfig task_model(models::CausalConfig model, std::int64_t vocab_size,
                                       std::int64_t length) {
  model.vocab_size = vocab_size;
  model.context = length;
  return model;
}

// Trains a model on a task and returns the part of correct predictions on new sequences.
template <class Task>
double learn_task(const Task& task, models::CausalTransformer& model, std::int64_t steps,
                  ComparedTraining& training) {
  training.train(model, with_steps(kTaskTraining, steps), [&]() -> train::StepLoss {
    return {train::token_loss(model, draw_batch(task, kTaskTraining.batch, default_generator())),
            kTaskTraining.batch * task.sequence_length()};
  });
  TorchGenerator random(~std::uint64_t{0});
  return train::token_score(model, draw_batch(task, kMeasuredSequences, random)).accuracy;
}

// Trains a model of `sizes` whose blocks attend as `attention` does.
template <class Task, class Attention>
double learn_task(const models::CausalConfig& sizes, const Task& task, const Attention& attention,
                  std::int64_t steps, ComparedTraining& training) {
  const std::int64_t length = task.sequence_length();
  models::CausalTransformer model(task_model(sizes, task.vocab_size(), length),
                                  attention.at(length));
  return learn_task(task, model, steps, training);
}

}  // namespace heed::cli
