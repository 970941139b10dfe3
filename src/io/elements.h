// The element types of array files, and their elements as bytes of a file.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "heed/core/tensor.h"
#include "heed/io/any_tensor.h"
#include "io/atomic_file.h"

namespace heed { inline namespace v0 { namespace io {

struct ElementType {
  std::string_view name;  // NumPy's name
  // kind and bytes, as in a .npy header; empty if NumPy has no such type
  std::string_view npy_code;
  std::string_view safetensors_code;         // as in the header of a safetensors file
  std::int64_t size;                         // bytes
  AnyTensor (*uninitialized)(const Shape&);  // null if AnyTensor has no such type
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

// Types of safetensors files that no AnyTensor has: models read them, arrays do not.
inline constexpr std::array kStoredTypes{
    ElementType{"float8_e4m3fn", "", "F8_E4M3", 1, nullptr},
    ElementType{"float8_e5m2", "", "F8_E5M2", 1, nullptr},
};

// Throws FormatError if one of these bytes of a file, which start at `offset`, is neither 0 nor 1.
// They are checked as bytes because reading another value as bool is undefined.
void check_bools(std::span<const std::byte> bytes, const std::string& file, std::int64_t offset);

template <class T>
void swap_bytes(std::span<T> elements) {
  using Bytes = std::array<std::byte, sizeof(T)>;
  for (T& element : elements) {
    auto bytes = std::bit_cast<Bytes>(element);
    std::reverse(bytes.begin(), bytes.end());
    element = std::bit_cast<T>(bytes);
  }
}

// Passes the elements of any view to `sink` in row-major order.
template <class T>
void write_elements(TensorView<const T> view, const ByteSink& sink) {
  if (view.is_contiguous()) {
    sink(std::as_bytes(view.elements()));
    return;
  }
  constexpr std::size_t kBlockBytes = 1 << 16;
  std::array<T, kBlockBytes / sizeof(T)> block{};
  std::size_t count = 0;
  const auto flush = [&] {
    sink(std::as_bytes(std::span(block).first(count)));
    count = 0;
  };
  for_each_element(view, [&](const T& element) {
    block[count++] = element;
    if (count == block.size()) flush();
  });
  flush();
}

}}}  // namespace heed::v0::io
