// A hash of the bits of results.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed::bits {

// FNV-1a of 64 bits. All NaNs are hashed alike, because their payload is unspecified.
class Hash {
 public:
  template <class T>
  void add(TensorView<const T> tensor) {
    add_bits(static_cast<std::uint64_t>(tensor.rank()));
    for (const std::int64_t extent : tensor.shape()) add_bits(static_cast<std::uint64_t>(extent));
    for_each_element(tensor, [this](const T& element) { add_number(element); });
  }
  template <class T>
  void add(const Tensor<T>& tensor) {
    add(tensor.view());
  }

  template <class T>
  void add_number(T number) {
    if constexpr (std::is_integral_v<T>) {
      add_bits(static_cast<std::uint64_t>(number));
    } else if constexpr (std::is_same_v<T, double>) {
      add_bits(std::bit_cast<std::uint64_t>(
          number != number ? std::numeric_limits<double>::quiet_NaN() : number));
    } else if constexpr (std::is_same_v<T, float>) {
      add_bits(std::bit_cast<std::uint32_t>(
          number != number ? std::numeric_limits<float>::quiet_NaN() : number));
    } else {
      const float value = number;
      add_bits((value != value ? T(std::numeric_limits<float>::quiet_NaN()) : number).bits());
    }
  }

  std::uint64_t value() const { return hash_; }

 private:
  template <class Bits>
  void add_bits(Bits bits) {
    for (std::size_t byte = 0; byte < sizeof(Bits); ++byte) {
      hash_ = (hash_ ^ (static_cast<std::uint64_t>(bits) >> (8 * byte) & 0xffU)) * 0x100000001b3U;
    }
  }

  std::uint64_t hash_ = 0xcbf29ce484222325U;
};

}  // namespace heed::bits
