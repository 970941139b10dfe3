// Random numbers that are the same with every compiler, standard library and processor.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "heed/core/tensor.h"

namespace heed::testing_support {

// SplitMix64. Source: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators",
// 2014.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }

  // Returns i with 0 ≤ i < bound; 0 if there is none.
  std::int64_t below(std::int64_t bound) {
    return bound <= 0 ? 0 : static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(bound));
  }

  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[below(static_cast<std::int64_t>(choices.size()))];
  }

  // Returns a nearly normal number with standard deviation 1.15, exact in float: the sum of four
  // uniform integers of 16 bits, in units of 2⁻¹⁵.
  float number() {
    const std::uint64_t bits = next();
    const std::uint64_t sum =
        (bits & 0xffffU) + (bits >> 16 & 0xffffU) + (bits >> 32 & 0xffffU) + (bits >> 48);
    return static_cast<float>(static_cast<std::int64_t>(sum) - 2 * 0xffff) * 0x1p-15F;
  }

  template <class T>
  void fill(Tensor<T>& tensor) {
    for (T& element : tensor.elements()) element = static_cast<T>(number());
  }

 private:
  std::uint64_t state_;
};

}  // namespace heed::testing_support
