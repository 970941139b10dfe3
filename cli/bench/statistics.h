// What repeated measurements say when other programs disturb some of them: the rule by which a
// repetition is quiet. tests/data/quiet has repetitions of which it is known when others ran.
#pragma once

#include <vector>

#include "bench/probe.h"

namespace heed::cli {

// One measurement between two probes of the machine.
struct Repetition {
  double seconds = 0;  // of one call
  Probe before;
  Probe after;
  // How long threads waited for a processor, by the time that the repetition took.
  double waiting_share = 0;
  Rates settled{};  // what settle_machine() returned before
  double at = 0;    // when it began, in seconds of the steady clock
  double elapsed = 0;
};

// Of the probes before these, and of those while the machine settled.
Rates undisturbed_rates(const std::vector<Repetition>& repetitions);

// Which repetitions are quiet: threads waited for at most 1 % of the time, and both probes around
// made at least 0.9 of the `undisturbed` calls of attention, and read in at most 1.3 times what
// probes take undisturbed before, or after, these repetitions. How long a read takes depends on
// what a call leaves in the caches, and before a repetition another call may have run than after
// it.
std::vector<bool> are_quiet(const std::vector<Repetition>& repetitions, const Rates& undisturbed);

// Of two in the middle, their mean. `numbers` is not empty.
double median(std::vector<double> numbers);

struct Timing {
  double median_seconds = 0;  // over the quiet repetitions, or over all when none was quiet
  double best_seconds = 0;    // over the same
  int quiet = 0;
  int repetitions = 0;
};

// `repetitions` is not empty; `undisturbed` is what undisturbed_rates() gives.
Timing summarize(const std::vector<Repetition>& repetitions, const Rates& undisturbed);

}  // namespace heed::cli
