// The memory formats of the weight types.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "heed/models/checkpoint.h"

namespace heed { inline namespace v0 { namespace models {

// The elements of a row that share a scale, in types with scales.
inline constexpr std::int64_t kWeightBlock = 32;

struct WeightFormat {
  std::string_view name;
  std::string_view safetensors_code;  // empty if safetensors files do not have the type
  std::string_view ggml_name;
  std::int64_t block_elements;
  std::int64_t block_bytes;
};

// In the order of WeightType.
inline constexpr auto kWeightFormats = std::to_array<WeightFormat>({
    {"float32", "F32", "F32", 1, 4},
    {"float16", "F16", "F16", 1, 2},
    {"bfloat16", "BF16", "BF16", 1, 2},
    {"q8_0", "", "Q8_0", kWeightBlock, 34},
    {"q4_0", "", "Q4_0", kWeightBlock, 18},
    {"q4_1", "", "Q4_1", kWeightBlock, 20},
});

constexpr const WeightFormat& format_of(WeightType type) {
  return kWeightFormats[static_cast<std::size_t>(type)];
}

}}}  // namespace heed::v0::models
