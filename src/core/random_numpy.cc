// The formulas are those of NumPy's legacy generator
// (numpy/random/src/legacy/legacy-distributions.c, numpy/random/src/distributions/distributions.c).

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/float_environment.h"
#include "core/mt19937.h"
#include "heed/core/elementary.h"
#include "heed/core/random.h"

namespace heed { inline namespace v0 {

namespace {

constexpr std::uint64_t kMax32 = std::numeric_limits<std::uint32_t>::max();

std::uint32_t checked_seed(std::uint64_t seed) {
  if (seed > kMax32) {
    throw InvalidArgument(
        fmt::format("NumpyRandomState: seed is {}; expected at most {}", seed, kMax32));
  }
  return static_cast<std::uint32_t>(seed);
}

// 53 random bits as a fraction of 1.
double standard_uniform(Mt19937& engine) {
  const std::uint64_t high27 = random32(engine) >> 5;
  const std::uint64_t low26 = random32(engine) >> 6;
  return static_cast<double>(high27 << 26 | low26) * 0x1p-53;
}

}  // namespace

NumpyRandomState::NumpyRandomState(std::uint64_t seed) : engine_(checked_seed(seed)) {}

double NumpyRandomState::standard_normal() {
  const FloatEnvironment environment;
  if (next_normal_) return *std::exchange(next_normal_, std::nullopt);
  double x = 0;
  double y = 0;
  double square = 0;  // of the radius of a point within the unit circle
  do {
    x = 2 * standard_uniform(engine_) - 1;
    y = 2 * standard_uniform(engine_) - 1;
    square = x * x + y * y;
  } while (square >= 1 || square == 0);
  const double factor = std::sqrt(-2 * elementary::log(square) / square);
  next_normal_ = factor * x;
  return settled(factor * y);
}

Tensor<double> NumpyRandomState::rand(const Shape& shape) {
  const FloatEnvironment environment;
  auto result = Tensor<double>::uninitialized(shape);
  std::generate_n(result.data(), result.num_elements(),
                  [this] { return standard_uniform(engine_); });
  return result;
}

Tensor<double> NumpyRandomState::randn(const Shape& shape) {
  const FloatEnvironment environment;
  auto result = Tensor<double>::uninitialized(shape);
  std::generate_n(result.data(), result.num_elements(), [this] { return standard_normal(); });
  return result;
}

Tensor<std::int64_t> NumpyRandomState::randint(std::int64_t low, std::int64_t high,
                                               const Shape& shape) {
  if (low >= high) {
    throw InvalidArgument(fmt::format(
        "NumpyRandomState::randint: low is {} and high is {}; expected low < high", low, high));
  }
  auto result = Tensor<std::int64_t>::uninitialized(shape);
  // Unsigned, because high − low may not fit in 63 bits.
  const auto base = static_cast<std::uint64_t>(low);
  const std::uint64_t largest = static_cast<std::uint64_t>(high) - base - 1;
  const std::uint64_t mask = largest == 0 ? 0 : ~std::uint64_t{0} >> std::countl_zero(largest);
  const auto draw = [&] {
    return (largest <= kMax32 ? random32(engine_) : random64(engine_)) & mask;
  };
  for (std::int64_t& element : result.elements()) {
    std::uint64_t offset = 0;  // a single possible value draws nothing
    if (largest != 0) {
      do {
        offset = draw();
      } while (offset > largest);
    }
    element = static_cast<std::int64_t>(base + offset);
  }
  return result;
}

}}  // namespace heed::v0
