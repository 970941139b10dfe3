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
  nlohmann::ordered_json description;  // identifies the case: one level of names
  double operations = 0;               // per call
  // The peak rate of the case's arithmetic relative to float: half for double, because a vector
  // holds half as many.
  double peak_factor = 1;
  int threads = 1;
  std::int64_t extra_bytes = 0;
  std::vector<Repetition> repetitions;
  // How many times as fast the case is as the first of those it alternated with: the median of the
  // ratios of the repetitions of each round. Empty where it did not alternate.
  std::optional<double> rate_over_first;
};

// A case that is ready to be measured. Its outcome describes it.
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

// Measures the time of the calls, which alternate, and the memory of each, and fills in the
// outcomes.
void measure(const Sampling& sampling, std::span<ReadyCase> cases, Progress& progress);
// Measures one case alone.
Outcome measure(const Sampling& sampling, ReadyCase ready, Progress& progress);

}  // namespace heed::cli
