// ggml's k-quants: blocks of 256 elements whose parts of 16 or 32 have a scale of few bits, and
// some a minimum, in units of the block's two Float16 numbers. Source: ggml,
// https://github.com/ggml-org/ggml (ggml-common.h: block_q2_K to block_q6_K).
#include "models/formats/block_formats.h"
#include "models/formats/block_reading.h"
#include "models/formats/part_scales.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using formats::kSuperBlock;
using formats::PartScale;
using formats::q3_k_scale;
using formats::read_byte;
using formats::read_float16;
using formats::scaled;
using formats::six_bits;

// d, dmin, 12 bytes of scales, and for each pair of parts 32 bytes with the nibbles of both. Five
// bits have the fifth bit of part p in bit p of 32 bytes before.
template <bool kHasFifthBit>
void decode_with_minimums(const std::byte* block, float* out) {
  const float d = read_float16(block);
  const float minimum_unit = read_float16(block + 2);
  const std::byte* const fifth = block + 16;
  const std::byte* const nibbles = block + (kHasFifthBit ? 48 : 16);
  for (int part = 0; part < 8; ++part) {
    const PartScale six = six_bits(block + 4, part);
    const float scale = scaled(d, six.scale);
    const float minimum = scaled(minimum_unit, six.minimum);
    for (int i = 0; i < 32; ++i) {
      int q = read_byte(nibbles, part / 2 * 32 + i) >> part % 2 * 4 & 15;
      if (kHasFifthBit) q |= (read_byte(fifth, i) >> part & 1) << 4;
      out[part * 32 + i] = scaled(scale, q) - minimum;
    }
  }
}

// The two bits of element i in 64 bytes: each byte of a half of 32 has those of four elements, 32
// apart.
int two_bits(const std::byte* bytes, int i) {
  return read_byte(bytes, i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 3;
}

// 16 bytes of scales and minimums, two bits of each element, d, dmin.
void decode_q2_k_block(const std::byte* block, float* out) {
  const float d = read_float16(block + 80);
  const float minimum_unit = read_float16(block + 82);
  for (int part = 0; part < 16; ++part) {
    const int pair = read_byte(block, part);
    const float scale = scaled(d, pair & 15);
    const float minimum = scaled(minimum_unit, pair >> 4);
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      out[i] = scaled(scale, two_bits(block + 16, i)) - minimum;
    }
  }
}

// The third bit of each element, two bits of each, scales, d. Without the third bit, 4 is
// subtracted.
void decode_q3_k_block(const std::byte* block, float* out) {
  const float d = read_float16(block + 108);
  for (int part = 0; part < 16; ++part) {
    const float scale = scaled(d, q3_k_scale(block + 96, part));
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      const bool has_third = (read_byte(block, i % 32) >> i / 32 & 1) != 0;
      out[i] = scaled(scale, two_bits(block + 32, i) - (has_third ? 0 : 4));
    }
  }
}

// The lower four bits, 64 bytes for each half; the upper two bits; 16 scales; d.
void decode_q6_k_block(const std::byte* block, float* out) {
  const float d = read_float16(block + 208);
  for (int part = 0; part < 16; ++part) {
    const float scale = scaled(d, formats::read_number<std::int8_t>(block + 192 + part));
    for (int i = part * 16; i < part * 16 + 16; ++i) {
      const int lower = read_byte(block, i / 128 * 64 + i % 64) >> i % 128 / 64 * 4 & 15;
      out[i] = scaled(scale, (lower | two_bits(block + 128, i) << 4) - 32);
    }
  }
}

}  // namespace

void decode_q2_k(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSuperBlock, 84>(blocks, num_blocks, out, decode_q2_k_block);
}

void decode_q3_k(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSuperBlock, 110>(blocks, num_blocks, out, decode_q3_k_block);
}

void decode_q4_k(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSuperBlock, 144>(blocks, num_blocks, out, decode_with_minimums<false>);
}

void decode_q5_k(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSuperBlock, 176>(blocks, num_blocks, out, decode_with_minimums<true>);
}

void decode_q6_k(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<kSuperBlock, 210>(blocks, num_blocks, out, decode_q6_k_block);
}

}}}  // namespace heed::v0::models
