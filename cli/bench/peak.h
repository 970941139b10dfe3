// The peak with which attention is compared: the rate of multiply-adds of this machine.
#pragma once

#include <vector>

namespace heed::cli {

// Measures the rate of `threads` threads together, by the slowest of them, for half a millisecond;
// the first time for as many threads for a quarter of a second.
void measure_peak(int threads);

// Returns the undisturbed rate of all measurements with as many threads, in float operations per
// second. Measures first if there was none.
double peak_rate(int threads);

// Returns the best of `rates`, the second best from 10 rates on and the third from 20 on, because a
// single one may be an outlier.
double undisturbed_rate(std::vector<double> rates);

}  // namespace heed::cli
