#include "bench/statistics.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace heed::cli {

namespace {

constexpr double kRateShare = 0.9;
constexpr double kReadFactor = 1.3;
constexpr double kWaitingShare = 0.01;

}  // namespace

double median(std::vector<double> numbers) {
  std::sort(numbers.begin(), numbers.end());
  const std::size_t half = numbers.size() / 2;
  return numbers.size() % 2 == 1 ? numbers[half] : (numbers[half - 1] + numbers[half]) / 2;
}

Rates undisturbed_rates(const std::vector<Repetition>& repetitions) {
  std::vector<Rates> rates;
  Rates settled;
  for (const Repetition& repetition : repetitions) {
    rates.push_back(repetition.before.rates);
    settled.fma = std::max(settled.fma, repetition.settled.fma);
    settled.attention = std::max(settled.attention, repetition.settled.attention);
  }
  const Rates found = undisturbed_rates(rates);
  return {std::max(settled.fma, found.fma), std::max(settled.attention, found.attention)};
}

std::vector<bool> are_quiet(const std::vector<Repetition>& repetitions, const Rates& undisturbed) {
  const auto slowest_read = [&](Probe Repetition::*probe) {
    std::vector<double> rates;
    rates.reserve(repetitions.size());
    for (const Repetition& repetition : repetitions) {
      rates.push_back(1 / (repetition.*probe).read_seconds);
    }
    return kReadFactor / undisturbed_rate(std::move(rates));
  };
  const double slowest_before = slowest_read(&Repetition::before);
  const double slowest_after = slowest_read(&Repetition::after);
  const auto is_quiet = [&](const Probe& probe, double slowest) {
    return probe.rates.attention >= kRateShare * undisturbed.attention &&
           probe.read_seconds <= slowest;
  };
  std::vector<bool> quiet;
  quiet.reserve(repetitions.size());
  for (const Repetition& repetition : repetitions) {
    quiet.push_back(repetition.waiting_share <= kWaitingShare &&
                    is_quiet(repetition.before, slowest_before) &&
                    is_quiet(repetition.after, slowest_after));
  }
  return quiet;
}

Timing summarize(const std::vector<Repetition>& repetitions, const Rates& undisturbed) {
  const std::vector<bool> is_quiet = are_quiet(repetitions, undisturbed);
  std::vector<double> all;
  std::vector<double> quiet;
  for (std::size_t i = 0; i < repetitions.size(); ++i) {
    all.push_back(repetitions[i].seconds);
    if (is_quiet[i]) quiet.push_back(repetitions[i].seconds);
  }
  const std::vector<double>& used = quiet.empty() ? all : quiet;
  return {median(used), *std::min_element(used.begin(), used.end()), static_cast<int>(quiet.size()),
          static_cast<int>(all.size())};
}

}  // namespace heed::cli
