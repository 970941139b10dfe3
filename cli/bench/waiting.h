// How long the threads of this process waited for a processor.
#pragma once

namespace heed::cli {

struct Waiting {
  double seconds = 0;  // that threads were ready to run and others ran, over all threads
  double turns = 0;    // how often one of them was given a processor
};

// Since the process began, of the threads that there are; 0 where the system does not say it. Linux
// does in /proc/self/task/*/schedstat.
Waiting waiting_so_far();

// The seconds of waiting between the two that others are to blame for. A thread that is woken waits
// some microseconds even where nobody else runs: 20 are allowed for each turn.
double waited(const Waiting& before, const Waiting& after);

}  // namespace heed::cli
