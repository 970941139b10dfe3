// What repeated measurements say when other programs disturb some of them.
#pragma once

#include <vector>

#include "bench/probe.h"

namespace heed::cli {

// One measurement between two probes of the machine.
struct Repetition {
  double seconds = 0;
  Probe before;
  Probe after;
};

// The best of each part of a probe, over all repetitions.
Probe best_probe(const std::vector<Repetition>& repetitions);

// The better of each part.
Probe better(const Probe& a, const Probe& b);

// Whether both probes around a repetition ran within 5 % of the best.
bool is_quiet(const Repetition& repetition, const Probe& best);

// Of two in the middle, their mean. `numbers` is not empty.
double median(std::vector<double> numbers);

struct Timing {
  double median_seconds = 0;  // over the quiet repetitions, or over all when none was quiet
  double best_seconds = 0;    // over the same
  int quiet = 0;
  int repetitions = 0;
};

// `repetitions` is not empty.
Timing summarize(const std::vector<Repetition>& repetitions, const Probe& best);

}  // namespace heed::cli
