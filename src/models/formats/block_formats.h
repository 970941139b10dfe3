// How tensors of each WeightType store the elements of a row, and their conversion to floats.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "heed/models/checkpoint.h"

namespace heed { inline namespace v0 { namespace models {

// Converts consecutive blocks, of any alignment, to floats.
using DecodeBlocks = void (*)(const std::byte* blocks, std::int64_t num_blocks, float* out);

void decode_float32(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_float16(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_bfloat16(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q8_0(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q4_0(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q4_1(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q5_0(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q5_1(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q2_k(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q3_k(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q4_k(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q5_k(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_q6_k(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_iq4_nl(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_iq4_xs(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_mxfp4(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_tq1_0(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_tq2_0(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_float8_e4m3(const std::byte* blocks, std::int64_t num_blocks, float* out);
void decode_float8_e5m2(const std::byte* blocks, std::int64_t num_blocks, float* out);

struct WeightFormat {
  std::string_view name;
  std::string_view safetensors_code;         // empty if safetensors files do not have the type
  std::optional<std::uint32_t> ggml_number;  // none if GGUF files do not have the type
  std::int64_t block_elements;
  std::int64_t block_bytes;
  DecodeBlocks decode;
  // True if products with few rows of numbers read the stored elements. Those of other types are
  // converted to floats first.
  bool multiplies_stored;
};

// In the order of WeightType.
inline constexpr auto kWeightFormats = std::to_array<WeightFormat>({
    {"float32", "F32", 0, 1, 4, decode_float32, true},
    {"float16", "F16", 1, 1, 2, decode_float16, true},
    {"bfloat16", "BF16", 30, 1, 2, decode_bfloat16, true},
    {"q8_0", "", 8, 32, 34, decode_q8_0, true},
    {"q4_0", "", 2, 32, 18, decode_q4_0, true},
    {"q4_1", "", 3, 32, 20, decode_q4_1, true},
    {"q5_0", "", 6, 32, 22, decode_q5_0, false},
    {"q5_1", "", 7, 32, 24, decode_q5_1, false},
    {"q2_k", "", 10, 256, 84, decode_q2_k, false},
    {"q3_k", "", 11, 256, 110, decode_q3_k, false},
    {"q4_k", "", 12, 256, 144, decode_q4_k, false},
    {"q5_k", "", 13, 256, 176, decode_q5_k, false},
    {"q6_k", "", 14, 256, 210, decode_q6_k, false},
    {"iq4_nl", "", 20, 32, 18, decode_iq4_nl, false},
    {"iq4_xs", "", 23, 256, 136, decode_iq4_xs, false},
    {"mxfp4", "", 39, 32, 17, decode_mxfp4, false},
    {"tq1_0", "", 34, 256, 54, decode_tq1_0, false},
    {"tq2_0", "", 35, 256, 66, decode_tq2_0, false},
    {"float8_e4m3", "F8_E4M3", std::nullopt, 1, 1, decode_float8_e4m3, false},
    {"float8_e5m2", "F8_E5M2", std::nullopt, 1, 1, decode_float8_e5m2, false},
});
static_assert(kWeightFormats.size() == static_cast<std::size_t>(WeightType::kFloat8E5M2) + 1);

constexpr const WeightFormat& format_of(WeightType type) {
  return kWeightFormats[static_cast<std::size_t>(type)];
}

// out[i] = stored element i. `bytes` need no alignment; `count` is a multiple of the type's block.
inline void decode(WeightType type, const std::byte* bytes, std::int64_t count, float* out) {
  const WeightFormat& format = format_of(type);
  format.decode(bytes, count / format.block_elements, out);
}

}}}  // namespace heed::v0::models
