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

std::vector<Repetition> time_calls(const Plan& plan, FunctionRef<void()> call, Progress& progress) {
  constexpr double kMostCalls = 100000;
  set_num_threads(plan.threads);
  double seconds = plan.seconds_per_repetition;
  for (int i = 0; i < plan.warmups; ++i) {
    seconds = seconds_per_call(1, call);
    progress.report(0, plan.repetitions);
  }
  const double count = std::ceil(plan.seconds_per_repetition / std::max(seconds, 1e-9));
  const int calls = static_cast<int>(std::clamp(count, 1.0, kMostCalls));
  std::vector<Repetition> repetitions;
  settle_machine(plan.threads);
  Probe before = probe_machine(plan.threads);
  for (int i = 0; i < plan.repetitions; ++i) {
    const double elapsed = seconds_per_call(calls, call);
    const Probe after = probe_machine(plan.threads);
    repetitions.push_back({elapsed, before, after});
    before = after;
    progress.report(i + 1, plan.repetitions);
  }
  return repetitions;
}

}  // namespace heed::cli
