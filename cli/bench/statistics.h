// Sums up repeated measurements.
#pragma once

#include <utility>
#include <vector>

namespace heed::cli {

// Returns the number below which a share of the numbers lies, interpolated between two of them, as
// numpy.quantile does. `numbers` is not empty.
double quantile(std::vector<double> numbers, double share);

inline double median(std::vector<double> numbers) { return quantile(std::move(numbers), 0.5); }

// What the repetitions of a call took. The distance of the quartiles tells how much they differ.
struct Timing {
  double median = 0;  // seconds per call, as the others
  double best = 0;
  double lower_quartile = 0;
  double upper_quartile = 0;
  int repetitions = 0;
};

// `seconds` is not empty.
Timing summarize(const std::vector<double>& seconds);

}  // namespace heed::cli
