#include "bench/outcome.h"

#include <cstddef>
#include <utility>

namespace heed::cli {

namespace {

double rate_over(const std::vector<Repetition>& first, const std::vector<Repetition>& other) {
  std::vector<double> ratios;
  for (std::size_t turn = 0; turn < first.size(); ++turn) {
    ratios.push_back(first[turn].seconds / other[turn].seconds);
  }
  return median(ratios);
}

}  // namespace

void measure(const Sampling& sampling, std::span<ReadyCase> cases, Progress& progress) {
  progress.start_case();
  std::vector<FunctionRef<void()>> calls;
  for (const ReadyCase& one : cases) calls.emplace_back(one.call);
  auto repetitions = time_in_turn(sampling, calls, progress);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    Outcome& outcome = cases[i].outcome;
    outcome.threads = sampling.threads;
    if (cases.size() > 1) outcome.rate_over_first = rate_over(repetitions[0], repetitions[i]);
    outcome.extra_bytes = cases[i].count_extra_bytes();
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    cases[i].outcome.repetitions = std::move(repetitions[i]);
  }
}

Outcome measure(const Sampling& sampling, ReadyCase ready, Progress& progress) {
  measure(sampling, {&ready, 1}, progress);
  return std::move(ready.outcome);
}

}  // namespace heed::cli
