// The table of element types that array files hold.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "heed/io/any_tensor.h"

namespace heed::inline v0::io {

struct ElementType {
  std::string_view name;      // NumPy's name
  std::string_view npy_code;  // kind and bytes, as in a .npy header
  std::int64_t size;          // bytes
  AnyTensor (*uninitialized)(const Shape&);
};

template <class T>
constexpr ElementType element_type(std::string_view name, std::string_view npy_code) {
  return {name, npy_code, sizeof(T),
          [](const Shape& shape) -> AnyTensor { return Tensor<T>::uninitialized(shape); }};
}

// In the order of AnyTensor's alternatives: a tensor's type is kElementTypes[tensor.index()].
inline constexpr std::array kElementTypes{
    element_type<float>("float32", "f4"),        element_type<double>("float64", "f8"),
    element_type<Float16>("float16", "f2"),      element_type<bool>("bool", "b1"),
    element_type<std::int8_t>("int8", "i1"),     element_type<std::int16_t>("int16", "i2"),
    element_type<std::int32_t>("int32", "i4"),   element_type<std::int64_t>("int64", "i8"),
    element_type<std::uint8_t>("uint8", "u1"),   element_type<std::uint16_t>("uint16", "u2"),
    element_type<std::uint32_t>("uint32", "u4"), element_type<std::uint64_t>("uint64", "u8"),
};
static_assert(kElementTypes.size() == std::variant_size_v<AnyTensor>);

}  // namespace heed::inline v0::io
