// How far a training run is, on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "heed/nn/trainer.h"

namespace heed::cli {

// A terminal gets one line that is rewritten, anything else a line for every tenth of the steps.
class TrainingProgress {
 public:
  // `unit` names what a step works on, "tokens" say.
  TrainingProgress(std::int64_t first_step, std::int64_t steps, std::string unit);
  ~TrainingProgress();
  TrainingProgress(const TrainingProgress&) = delete;
  TrainingProgress& operator=(const TrainingProgress&) = delete;

  // `items`: how many of them the step had.
  void report(const nn::TrainingStep& done, std::int64_t items);
  // A line that stays.
  void say(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(std::int64_t step) const;
  bool is_due(std::int64_t step) const;

  std::int64_t first_step_;
  std::int64_t steps_;
  std::int64_t items_ = 0;  // of all steps so far
  std::string unit_;
  bool is_terminal_;
  int width_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  double loss_ = 0;  // a moving average
  bool has_line_ = false;
};

}  // namespace heed::cli
