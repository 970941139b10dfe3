// The formulas are those of PyTorch 2.13 (ATen/core/DistributionsHelper.h,
// ATen/native/cpu/DistributionTemplates.h). Its AVX2 build contracts a · b + c to a fused
// multiply-add, so the same places use multiply_add here; otherwise the last bit would differ.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/float_environment.h"
#include "core/mt19937.h"
#include "core/multiply_add.h"
#include "heed/core/elementary.h"
#include "heed/core/random.h"

namespace heed { inline namespace v0 {

namespace {

// The block of the vectorised Box-Muller transform: 8 numbers for the radius, 8 for the angle.
constexpr std::int64_t kBlock = 16;

thread_local TorchGenerator* generator_of_thread = nullptr;

void check_no_repeats(const char* function, const Shape& shape, const Strides& strides) {
  for (int dim = 0; dim < shape.rank(); ++dim) {
    if (shape[dim] > 1 && strides[static_cast<std::size_t>(dim)] == 0) {
      throw InvalidArgument(
          fmt::format("{}: out of shape {} repeats elements along dimension {}; expected each "
                      "element once",
                      function, to_string(shape), dim));
    }
  }
}

// A view of the same elements with dimensions in the order of falling strides.
template <class T>
TensorView<T> in_memory_order(TensorView<T> view) {
  std::array<int, kMaxRank> order{};
  auto* const end = order.begin() + view.rank();
  std::iota(order.begin(), end, 0);
  std::stable_sort(order.begin(), end, [&](int a, int b) {
    return std::abs(view.stride(a)) > std::abs(view.stride(b));
  });
  std::array<std::int64_t, kMaxRank> extents{};
  Strides strides{};
  for (int dim = 0; dim < view.rank(); ++dim) {
    const auto i = static_cast<std::size_t>(dim);
    extents[i] = view.extent(order[i]);
    strides[i] = view.stride(order[i]);
  }
  const Shape shape(std::span(extents.data(), static_cast<std::size_t>(view.rank())));
  return TensorView<T>(view.data(), shape, strides);
}

// Random bits, as many as the mantissa of T has, as a fraction of 1.
template <class T>
T standard_uniform(Mt19937& engine) {
  constexpr std::uint64_t kRange = std::uint64_t{1} << std::numeric_limits<T>::digits;
  const std::uint64_t bits = std::is_same_v<T, double> ? random64(engine) : random32(engine);
  return static_cast<T>(bits % kRange) / static_cast<T>(kRange);
}

template <class T>
void fill_uniform(Mt19937& engine, TensorView<T> out, double from, double to) {
  const FloatEnvironment environment;
  constexpr double kMax = std::numeric_limits<T>::max();
  if (!(from <= to && from >= -kMax && to <= kMax && to - from <= kMax)) {
    throw InvalidArgument(
        fmt::format("TorchGenerator::uniform: from is {} and to is {}; expected from <= to and a "
                    "finite range",
                    from, to));
  }
  check_no_repeats("TorchGenerator::uniform", out.shape(), out.strides());
  const T low = static_cast<T>(from);
  const T high = static_cast<T>(to);
  for_each_element(in_memory_order(out), [&](T& element) {
    const T value = multiply_add(standard_uniform<T>(engine), high - low, low);
    element = value == high ? low : value;  // rounding may reach the excluded bound
  });
}

// Box-Muller on 16 uniforms, in place: the radius from element i, the angle from element i + 8.
template <class T>
void normal_block(T* block, T mean, T std) {
  constexpr auto kTwoPi = static_cast<T>(2 * std::numbers::pi);
  for (int i = 0; i < kBlock / 2; ++i) {
    const T radius = std::sqrt(T{-2} * elementary::log(T{1} - block[i]));
    const T angle = kTwoPi * block[i + kBlock / 2];
    block[i] = multiply_add(radius * elementary::cos(angle), std, mean);
    block[i + kBlock / 2] = multiply_add(radius * elementary::sin(angle), std, mean);
  }
}

template <class T>
void fill_normal_by_16(Mt19937& engine, TensorView<T> out, double mean, double std) {
  T* const data = out.data();
  const std::int64_t size = out.num_elements();
  const auto fill_block = [&](T* block) { normal_block(block, T(mean), T(std)); };
  const auto next_uniform = [&engine] { return standard_uniform<T>(engine); };

  std::generate_n(data, size, next_uniform);
  for (std::int64_t i = 0; i + kBlock <= size; i += kBlock) fill_block(data + i);
  if (size % kBlock != 0) {  // the last 16 numbers are drawn again, including those finished before
    std::generate_n(data + size - kBlock, kBlock, next_uniform);
    fill_block(data + size - kBlock);
  }
}

}  // namespace

TorchGenerator::TorchGenerator(std::uint64_t seed) { manual_seed(seed); }

void TorchGenerator::manual_seed(std::uint64_t seed) {
  engine_ = Mt19937(static_cast<std::uint32_t>(seed));
  next_normal_.reset();
}

double TorchGenerator::standard_normal() {
  const FloatEnvironment environment;
  if (next_normal_) return *std::exchange(next_normal_, std::nullopt);
  const double angle = 2 * std::numbers::pi * standard_uniform<double>(engine_);
  const double radius = std::sqrt(-2 * elementary::log1p(-standard_uniform<double>(engine_)));
  next_normal_ = radius * elementary::sin(angle);
  return settled(radius * elementary::cos(angle));
}

void TorchGenerator::uniform(TensorView<float> out, double from, double to) {
  fill_uniform(engine_, out, from, to);
}

void TorchGenerator::uniform(TensorView<double> out, double from, double to) {
  fill_uniform(engine_, out, from, to);
}

template <class T>
void TorchGenerator::fill_normal(TensorView<T> out, double mean, double std) {
  const FloatEnvironment environment;
  if (!(std >= 0)) {
    throw InvalidArgument(
        fmt::format("TorchGenerator::normal: std is {}; expected at least 0", std));
  }
  check_no_repeats("TorchGenerator::normal", out.shape(), out.strides());
  if (out.num_elements() >= kBlock && out.is_contiguous()) {
    fill_normal_by_16(engine_, out, mean, std);
    return;
  }
  for_each_element(in_memory_order(out), [&](T& element) {
    element = static_cast<T>(multiply_add(standard_normal(), std, mean));
  });
}

void TorchGenerator::normal(TensorView<float> out, double mean, double std) {
  fill_normal(out, mean, std);
}

void TorchGenerator::normal(TensorView<double> out, double mean, double std) {
  fill_normal(out, mean, std);
}

Tensor<std::int64_t> TorchGenerator::randint(std::int64_t low, std::int64_t high,
                                             const Shape& shape) {
  if (low >= high) {
    throw InvalidArgument(fmt::format(
        "TorchGenerator::randint: low is {} and high is {}; expected low < high", low, high));
  }
  auto result = Tensor<std::int64_t>::uninitialized(shape);
  // Unsigned, because high − low may not fit in 63 bits.
  const auto base = static_cast<std::uint64_t>(low);
  const std::uint64_t range = static_cast<std::uint64_t>(high) - base;
  constexpr std::uint64_t kSmallestRangeOf64Bits = std::uint64_t{1} << 28;
  for (std::int64_t& element : result.elements()) {
    const std::uint64_t bits =
        range < kSmallestRangeOf64Bits ? random32(engine_) : random64(engine_);
    element = static_cast<std::int64_t>(bits % range + base);
  }
  return result;
}

Tensor<std::int64_t> TorchGenerator::randperm(std::int64_t n) {
  if (n < 0) {
    throw InvalidArgument(fmt::format("TorchGenerator::randperm: n is {}; expected at least 0", n));
  }
  auto result = Tensor<std::int64_t>::uninitialized({n});
  const std::span<std::int64_t> order = result.elements();
  std::iota(order.begin(), order.end(), 0);
  const std::size_t size = order.size();
  // The Fisher–Yates shuffle: forwards, or inside out where 32 bits would be visibly biased.
  if (size < std::numeric_limits<std::uint32_t>::max() / 20) {
    for (std::size_t i = 0; i + 1 < size; ++i) {
      std::swap(order[i], order[i + random32(engine_) % (size - i)]);
    }
  } else {
    for (std::size_t i = 0; i < size; ++i) {
      std::swap(order[i], order[random64(engine_) % (i + 1)]);
    }
  }
  return result;
}

// The words of the engine and the index of the next one; then 1 if a normal number is kept,
// otherwise 0, and the bits of that number.
Tensor<std::uint64_t> TorchGenerator::state() const {
  std::vector<std::uint64_t> words(engine_.words.begin(), engine_.words.end());
  words.push_back(engine_.next);
  words.push_back(next_normal_ ? 1 : 0);
  words.push_back(std::bit_cast<std::uint64_t>(next_normal_.value_or(0)));
  const Shape shape{static_cast<std::int64_t>(words.size())};
  return {shape, words};
}

void TorchGenerator::set_state(TensorView<const std::uint64_t> state) {
  const Tensor<std::uint64_t> own = this->state();
  const Tensor<std::uint64_t> given = to_tensor(state);
  const auto words = given.elements();
  constexpr auto kSize = Mt19937::kSize;
  const auto is_32_bits = [](std::uint64_t word) { return word >> 32 == 0; };
  if (given.shape() != own.shape() || !std::all_of(words.begin(), words.end() - 2, is_32_bits) ||
      words[kSize] > kSize || words[kSize + 1] > 1) {
    throw InvalidArgument(
        fmt::format("TorchGenerator::set_state: shape {} and its words are not the state of a "
                    "generator, which has shape {}",
                    to_string(state.shape()), to_string(own.shape())));
  }
  for (std::size_t i = 0; i < kSize; ++i) engine_.words[i] = static_cast<std::uint32_t>(words[i]);
  engine_.next = words[kSize];
  next_normal_.reset();
  if (words[kSize + 1] == 1) next_normal_ = std::bit_cast<double>(words.back());
}

GeneratorScope::GeneratorScope(TorchGenerator& generator) noexcept
    : outer_(std::exchange(generator_of_thread, &generator)) {}

GeneratorScope::~GeneratorScope() { generator_of_thread = outer_; }

TorchGenerator& default_generator() {
  static TorchGenerator generator;
  return generator_of_thread == nullptr ? generator : *generator_of_thread;
}

void set_seed(std::uint64_t seed) { default_generator().manual_seed(seed); }

}}  // namespace heed::v0
