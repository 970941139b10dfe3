#include "heed/fma_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <string_view>

#include "attention/kernels/kernels.h"
#include "heed/attention.h"
#include "heed/error.h"

namespace heed::inline v0 {

namespace {

using Burst = std::int64_t(std::int64_t steps, float* sink);

// The same for the reference, in whatever vectors the baseline processor has.
std::int64_t plain_fma_burst(std::int64_t steps, float* sink) {
  constexpr int kSums = 64;
  float sums[kSums];
  for (int i = 0; i < kSums; ++i) sums[i] = static_cast<float>(i);
  for (std::int64_t step = 0; step < steps; ++step) {
    for (float& sum : sums) sum = sum * 0.999F + 0.999F;
  }
  *sink = 0;
  for (const float sum : sums) *sink += sum;
  return 2 * steps * kSums;
}

Burst* burst_in_use() {
  const auto target = attention_target();
  const auto& tables = kernels::supported_kernels();
  const auto found = std::find_if(tables.begin(), tables.end(), [&](const auto* table) {
    return std::string_view(table->name) == target;
  });
  return found == tables.end() ? plain_fma_burst : (*found)->fma_burst;
}

}  // namespace

double measure_fma_rate(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) {
    throw InvalidArgument(
        fmt::format("measure_fma_rate: seconds is {}, expected a positive number", seconds));
  }
  // A round takes some microseconds: long against reading the clock, short against a millisecond.
  constexpr std::int64_t kStepsPerRound = 1000;
  Burst* const burst = burst_in_use();
  float sink = 0;
  std::int64_t operations = 0;
  std::chrono::duration<double> elapsed{};
  const auto start = std::chrono::steady_clock::now();
  do {
    operations += burst(kStepsPerRound, &sink);
    elapsed = std::chrono::steady_clock::now() - start;
  } while (elapsed.count() < seconds);
  return static_cast<double>(operations) / elapsed.count();
}

}  // namespace heed::inline v0
