// Times calls repeatedly, each repetition between two probes of the machine.
#pragma once

#include <span>
#include <vector>

#include "bench/progress.h"
#include "bench/statistics.h"
#include "heed/core/function_ref.h"

namespace heed::cli {

struct Sampling {
  int threads = 1;
  int warmups = 1;
  int repetitions = 10;
  // A repetition makes as many calls as fill this time, at least one; its time is that of one call.
  double seconds_per_repetition = 2e-3;
};

// Returns the repetitions of each call. The calls alternate, so that a disturbance of the machine
// affects all of them. Sets num_threads() to sampling.threads and leaves it so.
std::vector<std::vector<Repetition>> time_in_turn(const Sampling& sampling,
                                                  std::span<const FunctionRef<void()>> calls,
                                                  Progress& progress);

// Returns the repetitions of one call.
std::vector<Repetition> time_calls(const Sampling& sampling, FunctionRef<void()> call,
                                   Progress& progress);

}  // namespace heed::cli
