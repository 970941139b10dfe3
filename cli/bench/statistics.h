// Evaluates repeated measurements of which other programs disturb some. This is the rule by which a
// repetition is quiet. tests/data/quiet has repetitions with known disturbances.
#pragma once

#include <vector>

#include "bench/probe.h"

namespace heed::cli {

// One measurement between two probes of the machine.
struct Repetition {
  double seconds = 0;  // per call
  Probe before;
  Probe after;
  // The time that threads waited for a processor, divided by the time of the repetition.
  double waiting_share = 0;
  Rates settled{};  // the result of settle_machine() before
  double at = 0;    // the start, in seconds of the steady clock
  double elapsed = 0;
};

// Returns the larger of two rates: that of the probes before the repetitions, and that found while
// the machine settled.
Rates undisturbed_rates(const std::vector<Repetition>& repetitions);

// Returns which repetitions are quiet. A repetition is quiet if threads waited for at most 1 % of
// its time, both probes around it made at least 0.9 of the `undisturbed` attention calls per
// second, and each probe read in at most 1.3 times the undisturbed time of the probes before, or
// after, these repetitions. The two sides are judged separately because a read depends on what the
// preceding call left in the caches, and another call may have run before a repetition than after
// it.
std::vector<bool> are_quiet(const std::vector<Repetition>& repetitions, const Rates& undisturbed);

// Returns the median; of an even count, the mean of the two in the middle. `numbers` is not empty.
double median(std::vector<double> numbers);

struct Timing {
  double median_seconds = 0;  // over the quiet repetitions, or over all when none was quiet
  double best_seconds = 0;    // over the same repetitions
  int quiet = 0;
  int repetitions = 0;
};

// `repetitions` is not empty; `undisturbed` is what undisturbed_rates() gives.
Timing summarize(const std::vector<Repetition>& repetitions, const Rates& undisturbed);

}  // namespace heed::cli
