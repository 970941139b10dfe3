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
  // A step works on `items` of what `unit` names, "tokens" say.
  TrainingProgress(std::int64_t first_step, std::int64_t steps, std::int64_t items,
                   std::string unit);
  ~TrainingProgress();
  TrainingProgress(const TrainingProgress&) = delete;
  TrainingProgress& operator=(const TrainingProgress&) = delete;

  void report(const nn::TrainingStep& done);

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(std::int64_t step) const;
  bool is_due(std::int64_t step) const;

  std::int64_t first_step_;
  std::int64_t steps_;
  std::int64_t items_;
  std::string unit_;
  bool is_terminal_;
  int width_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
  double loss_ = 0;  // a moving average
  bool has_line_ = false;
};

}  // namespace heed::cli
