// What the decoders of blocks share. The product of a scale and an integer is exact in every
// format, so that an element is rounded once at most, whether or not a compiler contracts
// multiplications and additions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "heed/core/data_type.h"

namespace heed { inline namespace v0 { namespace models { namespace formats {

// The elements of a block with scales of parts of it.
inline constexpr int kSuperBlock = 256;

template <class T>
T read_number(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

inline float read_float16(const std::byte* bytes) {
  return Float16::from_bits(read_number<std::uint16_t>(bytes));
}

inline int read_byte(const std::byte* bytes, int index) {
  return std::to_integer<int>(bytes[index]);
}

// A block's scale times an integer.
inline float scaled(float scale, int integer) { return scale * static_cast<float>(integer); }

// Calls decode_block(block, out) for consecutive blocks.
template <int kElements, int kBytes, class DecodeBlock>
void decode_each(const std::byte* blocks, std::int64_t num_blocks, float* out,
                 const DecodeBlock& decode_block) {
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    decode_block(blocks + i * kBytes, out + i * kElements);
  }
}

}}}}  // namespace heed::v0::models::formats
