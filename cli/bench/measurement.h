// Times calls again and again, each time between two probes of the machine.
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
  // A repetition is as many calls as fill this time, at least one; its time is that of one call.
  double seconds_per_repetition = 2e-3;
};

// The repetitions of each call. They take turns: what disturbs the machine disturbs all. Sets
// num_threads() to sampling.threads, for good.
std::vector<std::vector<Repetition>> time_in_turn(const Sampling& sampling,
                                                  std::span<const FunctionRef<void()>> calls,
                                                  Progress& progress);

// The same of one call.
std::vector<Repetition> time_calls(const Sampling& sampling, FunctionRef<void()> call,
                                   Progress& progress);

}  // namespace heed::cli
