// One measured case.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

#include "bench/measurement.h"
#include "bench/progress.h"

namespace heed::cli {

// NOLINTNEXTLINE(bugprone-exception-escape): JSON that is moved does not throw
struct Outcome {
  nlohmann::ordered_json description;  // identifies the case: one level of names
  double operations = 0;               // per call
  // The peak rate of the case's arithmetic relative to float: half for double, because a vector
  // holds half as many.
  double peak_factor = 1;
  int threads = 1;
  std::vector<double> seconds;  // per call, of each repetition
  // How many times as fast the case is as the first of those it alternated with: the median of the
  // ratios of the repetitions of each round. Empty where it did not alternate.
  std::optional<double> rate_over_first;
};

// A case that is ready to be measured. Its outcome describes it.
// NOLINTNEXTLINE(bugprone-exception-escape): JSON that is moved does not throw
struct ReadyCase {
  Outcome outcome;
  std::function<void()> call;
  std::function<void()> call_and_keep;  // keeps the result until the next call of this kind
};

template <class Call>
ReadyCase make_ready(const Call& call) {
  ReadyCase ready;
  ready.call = [call] { call(); };
  ready.call_and_keep = [call, kept = std::optional<std::invoke_result_t<Call>>()]() mutable {
    kept.reset();
    kept.emplace(call());
  };
  return ready;
}

// Measures the time of the calls, which alternate, and fills in the outcomes.
void measure(const Sampling& sampling, std::span<ReadyCase> cases, Progress& progress);
// Measures one case alone.
Outcome measure(const Sampling& sampling, ReadyCase ready, Progress& progress);

}  // namespace heed::cli
