/// The types of floating-point numbers that attention reads and writes.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "heed/core/config.h"
#include "heed/core/half.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

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
