#include "bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "heed/parallel.h"

namespace heed::cli {

namespace {

double seconds_per_call(int count, FunctionRef<void()> call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) call();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / count;
}

}  // namespace

std::vector<Repetition> time_calls(const Sampling& sampling, FunctionRef<void()> call,
                                   Progress& progress) {
  constexpr double kMostCalls = 100000;
  set_num_threads(sampling.threads);
  double seconds = sampling.seconds_per_repetition;
  for (int i = 0; i < sampling.warmups; ++i) {
    seconds = seconds_per_call(1, call);
    progress.report(0, sampling.repetitions);
  }
  const double count = std::ceil(sampling.seconds_per_repetition / std::max(seconds, 1e-9));
  const int calls = static_cast<int>(std::clamp(count, 1.0, kMostCalls));
  std::vector<Repetition> repetitions;
  settle_machine(sampling.threads);
  Probe before = probe_machine(sampling.threads);
  for (int i = 0; i < sampling.repetitions; ++i) {
    const double elapsed = seconds_per_call(calls, call);
    const Probe after = probe_machine(sampling.threads);
    repetitions.push_back({elapsed, before, after});
    before = after;
    progress.report(i + 1, sampling.repetitions);
  }
  return repetitions;
}

}  // namespace heed::cli
