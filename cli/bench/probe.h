// What the machine can do just now: other programs, and other guests of the same host, take some of
// it away for milliseconds to minutes.
#pragma once

#include <cstdint>
#include <vector>

namespace heed::cli {

// Rates of all threads together.
struct Rates {
  double fma = 0;        // float operations a second: the peak
  double attention = 0;  // a second, small calls that are always the same
};

struct Probe {
  Rates rates;
  double read_seconds = 0;  // of 1 MiB that was not read for a while
};

// What the probes read in turn: memory of the process beside that of what is measured.
inline constexpr std::int64_t kProbeBytes = std::int64_t{64} << 20;

// Runs half a millisecond of multiply-adds, some calls of attention of 128 queries and keys, and
// the read on each of `threads` threads, all at once. The slowest speaks for all. Multiply-adds
// alone do not feel every neighbour: beside a program on the other half of the same core they ran
// at 96 % of their rate while attention took 1.35 times as long.
Probe probe_machine(int threads);

// What the machine does while nothing disturbs it: of so many rates the best one, from 10 on the
// second best and from 20 on the third, as one alone may be an exception.
double undisturbed_rate(std::vector<double> rates);
Rates undisturbed_rates(const std::vector<Rates>& rates);

// Probes the machine for a quarter of a second, or for some milliseconds where it did so before for
// as many threads, and returns the undisturbed rates of the longer time: what disturbs a machine
// often lasts longer than a short measurement does. After a rest the first milliseconds can run at
// a higher clock than any that follow (seen: 215 GFLOP/s, then 180), and would make all others seem
// disturbed: they do not count.
Rates settle_machine(int threads);

}  // namespace heed::cli
