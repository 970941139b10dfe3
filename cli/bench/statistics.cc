#include "bench/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace heed::cli {

double quantile(std::vector<double> numbers, double share) {
  std::sort(numbers.begin(), numbers.end());
  const double place = share * static_cast<double>(numbers.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(place));
  const std::size_t above = std::min(below + 1, numbers.size() - 1);
  return std::lerp(numbers[below], numbers[above], place - std::floor(place));
}

Timing summarize(const std::vector<double>& seconds) {
  return {.median = median(seconds),
          .best = *std::min_element(seconds.begin(), seconds.end()),
          .lower_quartile = quantile(seconds, 0.25),
          .upper_quartile = quantile(seconds, 0.75),
          .repetitions = static_cast<int>(seconds.size())};
}

}  // namespace heed::cli
