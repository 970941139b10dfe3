// Trains the models of a comparison one after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "heed/nn/module.h"
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

}  // namespace heed::cli
