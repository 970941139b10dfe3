// Numbers without scales, and blocks of 32 elements with one scale.
// Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h: block_q8_0 and others).
#include <bit>
#include <cstring>

#include "models/formats/block_formats.h"
#include "models/formats/block_reading.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

constexpr int kSmallBlock = 32;
constexpr int kHalfBlock = kSmallBlock / 2;

template <class Half>
void decode_halves(const std::byte* bytes, std::int64_t count, float* out) {
  for (std::int64_t i = 0; i < count; ++i) {
    out[i] = Half::from_bits(formats::read_number<std::uint16_t>(bytes + 2 * i));
  }
}

// out = scale · (q + shift) + minimum for the nibbles q. A minimum of −0 changes nothing; 0 would
// change −0.
void decode_nibbles(const std::byte* bytes, float scale, int shift, float minimum, float* out) {
  for (int i = 0; i < kHalfBlock; ++i) {
    const int pair = formats::read_byte(bytes, i);
    out[i] = formats::scaled(scale, (pair & 15) + shift) + minimum;
    out[i + kHalfBlock] = formats::scaled(scale, (pair >> 4) + shift) + minimum;
  }
}

// The same for integers of five bits: the highest bit of all, then the nibbles.
void decode_five_bits(const std::byte* bytes, float scale, int shift, float minimum, float* out) {
  const auto high = formats::read_number<std::uint32_t>(bytes);
  const auto highest = [high](int i) { return static_cast<int>(high >> i & 1U) << 4; };
  for (int i = 0; i < kHalfBlock; ++i) {
    const int pair = formats::read_byte(bytes + 4, i);
    const int low = (pair & 15) | highest(i);
    const int upper = (pair >> 4) | highest(i + kHalfBlock);
    out[i] = formats::scaled(scale, low + shift) + minimum;
    out[i + kHalfBlock] = formats::scaled(scale, upper + shift) + minimum;
  }
}

// A sign, four bits of an exponent with the bias 7, and three bits of a fraction. The largest
// exponent is that of numbers, too, but for the largest fraction, which stands for no number.
float float8_e4m3(std::uint32_t bits) {
  const std::uint32_t sign = bits >> 7 << 31;
  const std::uint32_t exponent = bits >> 3 & 15;
  const std::uint32_t fraction = bits & 7;
  if (exponent == 0) {
    const float magnitude = static_cast<float>(fraction) * 0x1p-9F;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  if ((bits & 0x7F) == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000U);
  return std::bit_cast<float>(sign | (exponent + 120) << 23 | fraction << 20);
}

}  // namespace

void decode_float32(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  if (num_blocks == 0) return;
  std::memcpy(out, blocks, static_cast<std::size_t>(num_blocks) * sizeof(float));
}

void decode_float16(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  decode_halves<Float16>(blocks, num_blocks, out);
}

void decode_bfloat16(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  decode_halves<BFloat16>(blocks, num_blocks, out);
}

void decode_float8_e4m3(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    out[i] = float8_e4m3(std::to_integer<std::uint32_t>(blocks[i]));
  }
}

void decode_float8_e5m2(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  for (std::int64_t i = 0; i < num_blocks; ++i) {
    out[i] = Float16::from_bits(
        static_cast<std::uint16_t>(std::to_integer<std::uint32_t>(blocks[i]) << 8));
  }
}

void decode_q8_0(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSmallBlock, 34>(
      blocks, num_blocks, out, [](const std::byte* block, float* to) {
        const float scale = formats::read_float16(block);
        for (int i = 0; i < kSmallBlock; ++i) {
          to[i] = formats::scaled(scale, formats::read_number<std::int8_t>(block + 2 + i));
        }
      });
}

void decode_q4_0(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSmallBlock, 18>(
      blocks, num_blocks, out, [](const std::byte* block, float* to) {
        decode_nibbles(block + 2, formats::read_float16(block), -8, -0.0F, to);
      });
}

void decode_q4_1(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSmallBlock, 20>(blocks, num_blocks, out,
                                        [](const std::byte* block, float* to) {
                                          decode_nibbles(block + 4, formats::read_float16(block), 0,
                                                         formats::read_float16(block + 2), to);
                                        });
}

void decode_q5_0(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSmallBlock, 22>(
      blocks, num_blocks, out, [](const std::byte* block, float* to) {
        decode_five_bits(block + 2, formats::read_float16(block), -16, -0.0F, to);
      });
}

void decode_q5_1(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSmallBlock, 24>(blocks, num_blocks, out,
                                        [](const std::byte* block, float* to) {
                                          decode_five_bits(block + 4, formats::read_float16(block),
                                                           0, formats::read_float16(block + 2), to);
                                        });
}

}}}  // namespace heed::v0::models
