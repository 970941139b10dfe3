#include "bench/outcome.h"

#include <cstddef>
#include <utility>

#include "bench/statistics.h"

namespace heed::cli {

namespace {

double rate_over(const std::vector<double>& first, const std::vector<double>& other) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < first.size(); ++turn) {
    ratios.push_back(first[turn] / other[turn]);
  }
  return median(ratios);
}

}  // namespace

void measure(const Sampling& sampling, std::span<ReadyCase> cases, Progress& progress) {
  progress.start_case();
  std::vector<FunctionRef<void()>> calls;
  for (const ReadyCase& one : cases) calls.emplace_back(one.call);
  const auto made = time_in_turn(sampling, calls, progress.counting(sampling.repetitions));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Outcome& outcome = cases[i].outcome;
    outcome.threads = sampling.threads;
    outcome.seconds = made[i].seconds;
    if (cases.size() > 1) outcome.rate_over_first = rate_over(made[0].seconds, made[i].seconds);
  }
}

Outcome measure(const Sampling& sampling, ReadyCase ready, Progress& progress) {
  measure(sampling, {&ready, 1}, progress);
  return std::move(ready.outcome);
}

}  // namespace heed::cli
