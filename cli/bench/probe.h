// What the machine could do just now: other programs take some of it away for seconds at a time.
#pragma once

namespace heed::cli {

struct Probe {
  double fma_rate = 0;         // float operations a second, all threads together
  double product_seconds = 0;  // of a small matrix product that is always the same
};

// Runs a millisecond of multiply-adds and the product on each of `threads` threads at once, so many
// as num_threads() allows. The slowest thread speaks for all.
Probe probe_machine(int threads);

// Some milliseconds of the same. After a rest the first millisecond can run at a higher clock than
// any that follows (seen: 215 GFLOP/s, then 180), and would make all others seem disturbed.
void settle_machine(int threads);

}  // namespace heed::cli
