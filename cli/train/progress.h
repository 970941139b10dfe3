// Prints the progress of a training run on stderr.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "heed/nn/trainer.h"
#include "heed/train/training_run.h"

namespace heed::cli {

// On a terminal, prints one line that is overwritten; elsewhere a line for every tenth of the
// steps. Ctrl-C ends the run.
class TrainingProgress final : public train::RunObserver {
 public:
  TrainingProgress();
  ~TrainingProgress() override;

  void on_begin(std::int64_t steps_done, std::int64_t steps, const std::string& unit) override;
  void on_step(const nn::TrainingStep& done, std::int64_t items) override;
  void say(const std::string& line) override;
  bool wants_end() const override;

 private:
  using Clock = std::chrono::steady_clock;
  std::string text(std::int64_t step) const;
  bool is_due(std::int64_t step) const;

  std::int64_t first_step_ = 0;
  std::int64_t steps_ = 0;
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
