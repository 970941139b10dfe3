// Handles Ctrl-C so that a training step can finish.
#pragma once

#include <csignal>
#include <stdexcept>
#include <string>

namespace heed::cli {

// Thrown when a signal ended the verb after it had saved its state. Exit code 128 + signal.
class Interrupted : public std::runtime_error {
 public:
  Interrupted(int signal, const std::string& message)
      : std::runtime_error(message), signal_(signal) {}
  int exit_code() const noexcept { return 128 + signal_; }

 private:
  int signal_;
};

// While an object exists, the first SIGINT or SIGTERM is only recorded; a second one ends the
// program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Returns the signal that arrived, or 0.
  static int signal() noexcept;

 private:
  struct sigaction old_interrupt_ {};
  struct sigaction old_terminate_ {};
};

}  // namespace heed::cli
