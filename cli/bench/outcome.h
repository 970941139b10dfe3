// One measured case.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/heap.h"
#include "bench/measurement.h"

namespace heed::cli {

// NOLINTNEXTLINE(bugprone-exception-escape): JSON that is moved does not throw
struct Outcome {
  nlohmann::ordered_json description;  // what sets it apart from other cases: one level of names
  double operations = 0;               // of one call
  // What the arithmetic of the case can reach at most, relative to that of float: half for double,
  // of which a vector holds half as many.
  double peak_factor = 1;
  int threads = 1;
  std::int64_t extra_bytes = 0;
  std::vector<Repetition> repetitions;
};

// Measures the time of call(), and the memory of one more call.
template <class Call>
void measure(const Sampling& sampling, const Call& call, Progress& progress, Outcome& outcome) {
  progress.start_case();
  outcome.threads = sampling.threads;
  outcome.repetitions = time_calls(
      sampling, [&call] { call(); }, progress);
  outcome.extra_bytes = measure_extra_bytes(call);
}

}  // namespace heed::cli
