#include "train/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <iostream>

#include "heed/viz/terminal.h"
#include "train/interrupt.h"

namespace heed::cli {

namespace {

std::string clock_text(double seconds) {
  const auto whole = std::llround(seconds);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

TrainingProgress::TrainingProgress()
    : is_terminal_(::isatty(STDERR_FILENO) != 0), width_(detect_terminal(STDERR_FILENO).width) {}

TrainingProgress::~TrainingProgress() {
  if (has_line_) std::cerr << '\n';
}

std::string TrainingProgress::text(std::int64_t step) const {
  const std::chrono::duration<double> elapsed = Clock::now() - start_;
  const double seconds = std::max(elapsed.count(), 1e-9);
  const double rate = static_cast<double>(step - first_step_) / seconds;
  return fmt::format("step {}/{}  loss {:.4f}  {:.0f} {}/s  {} left", step, steps_, loss_,
                     static_cast<double>(items_) / seconds, unit_,
                     clock_text(static_cast<double>(steps_ - step) / rate));
}

bool TrainingProgress::is_due(std::int64_t step) const {
  if (step == steps_) return true;
  if (!is_terminal_) return step * 10 / steps_ != (step - 1) * 10 / steps_;
  return Clock::now() - last_ >= std::chrono::milliseconds(100);
}

void TrainingProgress::on_begin(std::int64_t steps_done, std::int64_t steps,
                                const std::string& unit) {
  first_step_ = steps_done;
  steps_ = steps;
  unit_ = unit;
  start_ = last_ = Clock::now();
}

bool TrainingProgress::wants_end() const { return InterruptGuard::signal() != 0; }

void TrainingProgress::say(const std::string& line) {
  std::cerr << (has_line_ ? "\r\x1b[K" : "") << line << '\n';
  has_line_ = false;
}

void TrainingProgress::on_step(const nn::TrainingStep& done, std::int64_t items) {
  constexpr double kKept = 0.9;
  items_ += items;
  const bool is_first = done.step == first_step_ + 1;
  loss_ = is_first ? done.loss : kKept * loss_ + (1 - kKept) * done.loss;
  if (!is_due(done.step)) return;
  last_ = Clock::now();
  std::string line = text(done.step);
  if (!is_terminal_) {
    std::cerr << line << '\n';
    return;
  }
  constexpr int kFrame = 3;  // two brackets and a space
  const int room = std::clamp(width_ - 1 - kFrame - static_cast<int>(line.size()), 0, 30);
  if (room >= 5) {
    const auto filled = static_cast<std::size_t>(done.step * room / steps_);
    std::string bar(filled, '#');
    bar.append(static_cast<std::size_t>(room) - filled, '.');
    line = '[' + bar + "] " + line;
  }
  line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(width_ - 1, 1))));
  std::cerr << '\r' << line << "\x1b[K" << std::flush;
  has_line_ = true;
}

void WritingProgress::report(std::size_t done) {
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < std::chrono::seconds(2)) return;
  last_ = now;
  has_line_ = ::isatty(STDERR_FILENO) != 0;
  const auto text = fmt::format("{} of {} {}", done, total_, unit_);
  std::cerr << (has_line_ ? "\r" : "") << text << (has_line_ ? "\x1b[K" : "\n") << std::flush;
}

WritingProgress::~WritingProgress() {
  if (has_line_) std::cerr << "\r\x1b[K" << std::flush;
}

}  // namespace heed::cli
