// The table of the element types of array files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "heed/io/any_tensor.h"

namespace heed { inline namespace v0 { namespace io {

struct ElementType {
  std::string_view name;  // NumPy's name
  // kind and bytes, as in a .npy header; empty if NumPy has no such type
  std::string_view npy_code;
  std::string_view safetensors_code;  // as in the header of a safetensors file
  std::int64_t size;                  // bytes
  AnyTensor (*uninitialized)(const Shape&);
};

template <class T>
constexpr ElementType element_type(std::string_view name, std::string_view npy_code,
                                   std::string_view safetensors_code) {
  return {name, npy_code, safetensors_code, sizeof(T),
          [](const Shape& shape) -> AnyTensor { return Tensor<T>::uninitialized(shape); }};
}

// In the order of AnyTensor's alternatives: a tensor's type is kElementTypes[tensor.index()].
inline constexpr std::array kElementTypes{
    element_type<float>("float32", "f4", "F32"),
    element_type<double>("float64", "f8", "F64"),
    element_type<Float16>("float16", "f2", "F16"),
    element_type<bool>("bool", "b1", "BOOL"),
    element_type<std::int8_t>("int8", "i1", "I8"),
    element_type<std::int16_t>("int16", "i2", "I16"),
    element_type<std::int32_t>("int32", "i4", "I32"),
    element_type<std::int64_t>("int64", "i8", "I64"),
    element_type<std::uint8_t>("uint8", "u1", "U8"),
    element_type<std::uint16_t>("uint16", "u2", "U16"),
    element_type<std::uint32_t>("uint32", "u4", "U32"),
    element_type<std::uint64_t>("uint64", "u8", "U64"),
    element_type<BFloat16>("bfloat16", "", "BF16"),
};
static_assert(kElementTypes.size() == std::variant_size_v<AnyTensor>);

}}}  // namespace heed::v0::io
