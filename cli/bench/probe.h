// Measures what the machine can do at this moment. Other programs, and other guests of the same
// host, take part of it for milliseconds to minutes.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::cli {

// The rates of all threads together.
struct Rates {
  double fma = 0;        // float operations per second, the peak
  double attention = 0;  // small, identical calls per second
};

struct Probe {
  Rates rates;
  double read_seconds = 0;  // to read 1 MiB that has not been read for a while
};

// The memory that the probes read in turn. It belongs to the process in addition to the measured
// memory.
inline constexpr std::int64_t kProbeBytes = std::int64_t{64} << 20;

// Runs on each of `threads` threads, simultaneously, half a millisecond of multiply-adds, some
// attention calls of 128 queries and keys, and the read. The slowest thread determines the result.
// Multiply-adds alone do not detect every disturbance: next to a program on the other hyperthread
// of the core they ran at 96 % of their rate while attention took 1.35 times as long.
Probe probe_machine(int threads);

// Returns the rate of the undisturbed machine: the best of `rates`, the second best from 10 rates
// on and the third from 20 on, because a single one may be an outlier.
double undisturbed_rate(std::vector<double> rates);
Rates undisturbed_rates(const std::vector<Rates>& rates);

// Probes the machine for a quarter of a second, or for some milliseconds if it has done so for as
// many threads before, and returns the undisturbed rates of the quarter of a second: a disturbance
// often lasts longer than a short measurement. After a rest the first milliseconds can run at a
// higher clock than the following (seen: 215 GFLOP/s, then 180), so they are not counted.
Rates settle_machine(int threads);

}  // namespace heed::cli
