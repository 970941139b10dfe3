#include "models/decode.h"

#include <cstring>

#include "heed/core/data_type.h"
#include "models/weight_format.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

template <class T>
T read_number(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

template <class Half>
float half_number(const std::byte* bytes) {
  return Half::from_bits(read_number<std::uint16_t>(bytes));
}

template <class Half>
void decode_halves(const std::byte* bytes, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = half_number<Half>(bytes + 2 * i);
}

void decode_q8_0_block(const std::byte* block, float* out) {
  const float scale = half_number<Float16>(block);
  for (std::int64_t i = 0; i < kWeightBlock; ++i) {
    out[i] = scale * static_cast<float>(read_number<std::int8_t>(block + 2 + i));
  }
}

// out = scale · (q + shift) + minimum for the nibbles q; the product is exact.
void decode_nibbles(const std::byte* bytes, float scale, int shift, float minimum, float* out) {
  constexpr std::int64_t kHalf = kWeightBlock / 2;
  for (std::int64_t i = 0; i < kHalf; ++i) {
    const int pair = std::to_integer<int>(bytes[i]);
    out[i] = scale * static_cast<float>((pair & 15) + shift) + minimum;
    out[i + kHalf] = scale * static_cast<float>((pair >> 4) + shift) + minimum;
  }
}

void decode_q4_0_block(const std::byte* block, float* out) {
  // Adding −0 changes nothing; adding 0 would change −0.
  decode_nibbles(block + 2, half_number<Float16>(block), -8, -0.0F, out);
}

void decode_q4_1_block(const std::byte* block, float* out) {
  decode_nibbles(block + 4, half_number<Float16>(block), 0, half_number<Float16>(block + 2), out);
}

template <class Decode>
void decode_blocks(WeightType type, const Decode& decode_block, const std::byte* bytes,
                   std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; i += kWeightBlock) {
    decode_block(bytes, out + i);
    bytes += format_of(type).block_bytes;
  }
}

}  // namespace

void decode(WeightType type, const std::byte* bytes, std::int64_t count, float* out) {
  switch (type) {
    case WeightType::kFloat32:
      if (count > 0) std::memcpy(out, bytes, static_cast<std::size_t>(count) * sizeof(float));
      return;
    case WeightType::kFloat16:
      return decode_halves<Float16>(bytes, count, out);
    case WeightType::kBFloat16:
      return decode_halves<BFloat16>(bytes, count, out);
    case WeightType::kQ8_0:
      return decode_blocks(type, decode_q8_0_block, bytes, count, out);
    case WeightType::kQ4_0:
      return decode_blocks(type, decode_q4_0_block, bytes, count, out);
    case WeightType::kQ4_1:
      return decode_blocks(type, decode_q4_1_block, bytes, count, out);
  }
}

}}}  // namespace heed::v0::models
