// One measured case.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
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
  // How many times as fast it is as the first of the cases it took turns with: the median of what
  // the repetitions of each turn say. None where it took no turns.
  std::optional<double> rate_over_first;
};

// A case that can be measured; its outcome says what it is.
// NOLINTNEXTLINE(bugprone-exception-escape): JSON that is moved does not throw
struct ReadyCase {
  Outcome outcome;
  std::function<void()> call;
  std::function<std::int64_t()> count_extra_bytes;  // of one more call
};

template <class Call>
ReadyCase make_ready(const Call& call) {
  ReadyCase ready;
  ready.call = [call] { call(); };
  ready.count_extra_bytes = [call] { return measure_extra_bytes(call); };
  return ready;
}

// Measures the time of the calls, which take turns, and the memory of each: what the outcomes lack.
void measure(const Sampling& sampling, std::span<ReadyCase> cases, Progress& progress);
// The same of one case, which has no turns to take.
Outcome measure(const Sampling& sampling, ReadyCase ready, Progress& progress);

}  // namespace heed::cli
