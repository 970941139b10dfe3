/// The types of floating-point numbers that attention reads and writes. The 16-bit formats are for
/// storage; every computation is in float.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

template <class T>
class TensorView;  // heed/core/tensor.h

/// IEEE 754 binary16: 1 sign, 5 exponent, 10 fraction bits. Conversion from float rounds to nearest
/// even, overflows to infinity and keeps NaN.
class Float16 {
 public:
  constexpr Float16() = default;
  constexpr explicit Float16(float value) : bits_(encode(value)) {}
  // NOLINTNEXTLINE(google-explicit-constructor): it is exact
  constexpr operator float() const { return decode(bits_); }

  static constexpr Float16 from_bits(std::uint16_t bits) {
    Float16 result;
    result.bits_ = bits;
    return result;
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr std::uint16_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    std::uint32_t half = 0;
    if (magnitude > 0x7f800000U) {
      half = 0x7e00U | (magnitude >> 13 & 0x3ffU);  // NaN, quiet, its payload's top kept
    } else if (magnitude >= 0x477ff000U) {
      half = 0x7c00U;  // 65520 and above round to infinity
    } else if (magnitude >= 0x38800000U) {
      half = round_shift(magnitude - 0x38000000U, 13);
    } else if (magnitude >= 0x33000000U) {
      // Subnormal: the significand, with its hidden bit, in units of 2⁻²⁴.
      half = round_shift((magnitude & 0x7fffffU) | 0x800000U, 126 - (magnitude >> 23));
    }
    return static_cast<std::uint16_t>(sign | half);
  }
  static constexpr std::uint32_t round_shift(std::uint32_t value, std::uint32_t shift) {
    const std::uint32_t half_unit = (1U << (shift - 1)) - 1 + (value >> shift & 1U);
    return (value + half_unit) >> shift;
  }
  static constexpr float decode(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16;
    const std::uint32_t exponent = bits >> 10 & 0x1fU;
    const std::uint32_t fraction = bits & 0x3ffU;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
      return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t rebiased = exponent == 0x1fU ? 0xffU : exponent + 112;
    return std::bit_cast<float>(sign | rebiased << 23 | fraction << 13);
  }

  std::uint16_t bits_ = 0;
};

/// bfloat16: the upper half of a float32. Conversion from float rounds to nearest even and keeps
/// NaN.
class BFloat16 {
 public:
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float value) : bits_(encode(value)) {}
  constexpr operator float() const {  // NOLINT(google-explicit-constructor): it is exact
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
  }

  static constexpr BFloat16 from_bits(std::uint16_t bits) {
    BFloat16 result;
    result.bits_ = bits;
    return result;
  }
  constexpr std::uint16_t bits() const { return bits_; }

 private:
  static constexpr std::uint16_t encode(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return static_cast<std::uint16_t>(bits >> 16 | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
  }

  std::uint16_t bits_ = 0;
};

/// The element type of a tensor.
enum class DataType : std::uint8_t { kFloat32, kFloat16, kBFloat16, kFloat64 };

/// The name of a type: "float32", "float16", "bfloat16" or "float64".
HEED_API std::string_view to_string(DataType type) noexcept;

/// The size of one number, in bytes.
constexpr std::int64_t size_of(DataType type) noexcept {
  return type == DataType::kFloat64 ? 8 : type == DataType::kFloat32 ? 4 : 2;
}

/// The DataType of float, Float16, BFloat16 or double.
template <class T>
constexpr DataType data_type_of() {
  if constexpr (std::is_same_v<T, float>) {
    return DataType::kFloat32;
  } else if constexpr (std::is_same_v<T, Float16>) {
    return DataType::kFloat16;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return DataType::kBFloat16;
  } else {
    static_assert(std::is_same_v<T, double>);
    return DataType::kFloat64;
  }
}

using Float16View = TensorView<const Float16>;
using BFloat16View = TensorView<const BFloat16>;

}}  // namespace heed::v0
