// Times calls that take turns. Whatever measures in heed measures with it, python -m heed.bench
// too.
#pragma once

#include <span>
#include <vector>

#include "heed/core/function_ref.h"

namespace heed::cli {

struct Sampling {
  int threads = 1;
  int warmups = 1;
  int repetitions = 10;
  // A repetition makes as many calls as fill this time, at least one; its time is that of one call.
  double seconds_per_repetition = 2e-3;
  // Whether a repetition of several calls begins with one that is not timed, which brings its
  // operands back into the caches.
  bool begins_untimed = false;
  // The seconds of rest before each repetition, for threads of other libraries that spin on.
  double rest = 0;
};

// The repetitions of one call.
struct Repetitions {
  std::vector<double> seconds;       // per call
  std::vector<double> busy_threads;  // the processors that the process kept busy
};

// Returns the repetitions of each call. The calls alternate, so that a disturbance of the machine
// affects all of them. Before each repetition the machine's peak is measured. Sets num_threads() to
// sampling.threads and leaves it so. Calls `report` with the number of repetitions that all calls
// have made.
std::vector<Repetitions> time_in_turn(const Sampling& sampling,
                                      std::span<const FunctionRef<void()>> calls,
                                      FunctionRef<void(int)> report);

}  // namespace heed::cli
