#include "bench/measurement.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>

#include "bench/waiting.h"
#include "heed/core/parallel.h"

namespace heed::cli {

namespace {

double seconds_per_call(int count, FunctionRef<void()> call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < count; ++i) call();
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return elapsed.count() / count;
}

// Times one repetition, without the probes around it.
Repetition time_once(int count, FunctionRef<void()> call) {
  Repetition made;
  const Waiting waiting = waiting_so_far();
  made.at =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  made.seconds = seconds_per_call(count, call);
  made.elapsed = made.seconds * count;
  made.waiting_share = waited(waiting, waiting_so_far()) / made.elapsed;
  return made;
}

// Returns the number of calls that fill a repetition, estimated from the last warm-up call.
int calls_of_repetition(const Sampling& sampling, FunctionRef<void()> call, Progress& progress) {
  constexpr double kMostCalls = 100000;
  double seconds = sampling.seconds_per_repetition;
  for (int i = 0; i < sampling.warmups; ++i) {
    seconds = seconds_per_call(1, call);
    progress.report(0, sampling.repetitions);
  }
  const double count = std::ceil(sampling.seconds_per_repetition / std::max(seconds, 1e-9));
  return static_cast<int>(std::clamp(count, 1.0, kMostCalls));
}

}  // namespace

std::vector<std::vector<Repetition>> time_in_turn(const Sampling& sampling,
                                                  std::span<const FunctionRef<void()>> calls,
                                                  Progress& progress) {
  set_num_threads(sampling.threads);
  std::vector<int> counts;
  for (const auto& call : calls) counts.push_back(calls_of_repetition(sampling, call, progress));
  std::vector<std::vector<Repetition>> repetitions(calls.size());
  const Rates settled = settle_machine(sampling.threads);
  Probe before = probe_machine(sampling.threads);
  for (int i = 0; i < sampling.repetitions; ++i) {
    for (std::size_t which = 0; which < calls.size(); ++which) {
      Repetition repetition = time_once(counts[which], calls[which]);
      repetition.settled = settled;
      repetition.before = before;
      repetition.after = before = probe_machine(sampling.threads);
      repetitions[which].push_back(repetition);
    }
    progress.report(i + 1, sampling.repetitions);
  }
  return repetitions;
}

std::vector<Repetition> time_calls(const Sampling& sampling, FunctionRef<void()> call,
                                   Progress& progress) {
  return time_in_turn(sampling, {&call, 1}, progress).front();
}

}  // namespace heed::cli
