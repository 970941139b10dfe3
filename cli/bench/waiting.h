// Measures how long the threads of this process waited for a processor.
#pragma once

namespace heed::cli {

struct Waiting {
  double seconds = 0;  // in which a thread was ready but did not run, summed over threads
  double turns = 0;    // how often a thread was given a processor
};

// Returns the sums over the threads that exist now, each since its start; 0 where the system does
// not report them. Linux does in /proc/self/task/*/schedstat.
Waiting waiting_so_far();

// Returns the seconds of waiting between two readings that other programs caused. A thread that is
// woken waits some microseconds even on an idle machine: 20 µs are subtracted per turn.
double waited(const Waiting& before, const Waiting& after);

}  // namespace heed::cli
