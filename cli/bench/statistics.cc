#include "bench/statistics.h"

#include <algorithm>
#include <cstddef>

namespace heed::cli {

namespace {

constexpr double kQuietShare = 0.95;

bool is_quiet(const Probe& probe, const Probe& best) {
  return probe.fma_rate >= kQuietShare * best.fma_rate &&
         best.product_seconds >= kQuietShare * probe.product_seconds;
}

}  // namespace

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

Probe better(const Probe& a, const Probe& b) {
  return {std::max(a.fma_rate, b.fma_rate), std::min(a.product_seconds, b.product_seconds)};
}

Probe best_probe(const std::vector<Repetition>& repetitions) {
  Probe best = repetitions.front().before;
  for (const Repetition& repetition : repetitions) {
    best = better(best, better(repetition.before, repetition.after));
  }
  return best;
}

bool is_quiet(const Repetition& repetition, const Probe& best) {
  return is_quiet(repetition.before, best) && is_quiet(repetition.after, best);
}

Timing summarize(const std::vector<Repetition>& repetitions, const Probe& best) {
  std::vector<double> all;
  std::vector<double> quiet;
  for (const Repetition& repetition : repetitions) {
    all.push_back(repetition.seconds);
    if (is_quiet(repetition, best)) quiet.push_back(repetition.seconds);
  }
  const std::vector<double>& used = quiet.empty() ? all : quiet;
  return {median(used), *std::min_element(used.begin(), used.end()), static_cast<int>(quiet.size()),
          static_cast<int>(all.size())};
}

}  // namespace heed::cli
