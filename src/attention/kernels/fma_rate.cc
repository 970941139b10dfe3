#include "heed/attention/fma_rate.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <cstdint>

#include "attention/kernels/target.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

// fma_burst() for the reference, with the vectors of the baseline processor.
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

}  // namespace

double measure_fma_rate(double seconds) {
  if (!std::isfinite(seconds) || seconds <= 0) {
    throw InvalidArgument(
        fmt::format("measure_fma_rate: seconds is {}, expected a positive number", seconds));
  }
  // A round takes some microseconds: long compared with reading the clock, short compared with a
  // millisecond.
  constexpr std::int64_t kStepsPerRound = 1000;
  const kernels::KernelTable* const table = kernels_in_use();
  const auto burst = table == nullptr ? plain_fma_burst : table->fma_burst;
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

}}  // namespace heed::v0
