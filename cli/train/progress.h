// Prints progress on stderr: of a training run, and of items that are written.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

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

class WritingProgress {
 public:
  explicit WritingProgress(std::size_t total, std::string unit = "sentences written")
      : total_(total), unit_(std::move(unit)) {}
  ~WritingProgress();
  WritingProgress(const WritingProgress&) = delete;
  WritingProgress& operator=(const WritingProgress&) = delete;

  // May be called often: it prints at most every two seconds.
  void report(std::size_t done);

 private:
  std::size_t total_;
  std::string unit_;
  bool has_line_ = false;  // a line on the terminal that is overwritten
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace heed::cli
