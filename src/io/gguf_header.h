// The part of a GGUF file before the bytes of its tensors, and the types of tensors.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "heed/io/gguf.h"

namespace heed { inline namespace v0 { namespace io {

// A type that stores consecutive elements of a row in blocks of `block_elements` elements, which
// take `block_bytes` bytes.
struct GgmlType {
  std::uint32_t number;
  std::string_view name;
  std::int64_t block_elements;
  std::int64_t block_bytes;
};

// The types that files hold. Source: ggml's enum ggml_type and the sizes of its blocks.
inline constexpr std::array kGgmlTypes = std::to_array<GgmlType>({
    {0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},
    {3, "Q4_1", 32, 20},      {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},
    {8, "Q8_0", 32, 34},      {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},
    {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},   {14, "Q6_K", 256, 210},
    {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},  {18, "IQ3_XXS", 256, 98},
    {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
    {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},
    {25, "I16", 1, 2},        {26, "I32", 1, 4},        {27, "I64", 1, 8},
    {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},   {30, "BF16", 1, 2},
    {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
    {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18},
});

// Returns null for a type that is not in the table.
constexpr const GgmlType* find_ggml_type(std::uint32_t number) {
  const auto* const found =
      std::find_if(kGgmlTypes.begin(), kGgmlTypes.end(),
                   [number](const GgmlType& type) { return type.number == number; });
  return found == kGgmlTypes.end() ? nullptr : found;
}

// Returns e.g. "Q6_K", or "ggml's type 99".
inline std::string ggml_type_name(std::uint32_t number) {
  const GgmlType* const type = find_ggml_type(number);
  return type == nullptr ? fmt::format("ggml's type {}", number) : std::string(type->name);
}

struct GgufHeader {
  std::map<std::string, GgufValue, std::less<>> metadata;
  // The position of the first byte of each key's value, and of the end of the last value.
  std::map<std::string, std::int64_t, std::less<>> value_begin;
  std::int64_t metadata_end = 0;
  std::map<std::string, GgufTensor, std::less<>> tensors;
};

// Parses the header of a whole file; the tensors point into `bytes`. Throws FormatError, which
// names `file`, if the bytes are no GGUF file.
GgufHeader parse_gguf_header(std::span<const std::byte> bytes, const std::string& file);

}}}  // namespace heed::v0::io
