#include "bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <ctime>
#include <thread>

#include "bench/peak.h"
#include "heed/core/parallel.h"

namespace heed::cli {

namespace {

double seconds_per_call(int count, FunctionRef<void()> call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) call();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / count;
}

void time_once(const Sampling& sampling, int count, FunctionRef<void()> call, Repetitions& made) {
  if (sampling.rest > 0) std::this_thread::sleep_for(std::chrono::duration<double>(sampling.rest));
  measure_peak(sampling.threads);
  if (sampling.begins_untimed && count > 1) call();
  const std::clock_t busy = std::clock();  // of all threads
  const double seconds = seconds_per_call(count, call);
  const double busy_seconds = static_cast<double>(std::clock() - busy) / CLOCKS_PER_SEC;
  made.seconds.push_back(seconds);
  made.busy_threads.push_back(busy_seconds / (seconds * count));
}

// Returns the number of calls that fill a repetition, estimated from the last warm-up call.
int calls_of_repetition(const Sampling& sampling, FunctionRef<void()> call,
                        FunctionRef<void(int)> report) {
  constexpr double kMostCalls = 100000;
  double seconds = sampling.seconds_per_repetition;
  for (int i = 0; i < sampling.warmups; ++i) {
    seconds = seconds_per_call(1, call);
    report(0);
  }
  const double count = std::ceil(sampling.seconds_per_repetition / std::max(seconds, 1e-9));
  return static_cast<int>(std::clamp(count, 1.0, kMostCalls));
}

}  // namespace

std::vector<Repetitions> time_in_turn(const Sampling& sampling,
                                      std::span<const FunctionRef<void()>> calls,
                                      FunctionRef<void(int)> report) {
  set_num_threads(sampling.threads);
  std::vector<int> counts;
  for (const auto& call : calls) counts.push_back(calls_of_repetition(sampling, call, report));
  std::vector<Repetitions> made(calls.size());
  for (int i = 0; i < sampling.repetitions; ++i) {
    for (std::size_t which = 0; which < calls.size(); ++which) {
      time_once(sampling, counts[which], calls[which], made[which]);
    }
    report(i + 1);
  }
  return made;
}

}  // namespace heed::cli
