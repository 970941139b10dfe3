// Blocks whose integers choose numbers of a table (IQ4_NL, IQ4_XS, MXFP4), and ternary ones.
// Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h: kvalues_iq4nl, kvalues_mxfp4,
// block_iq4_nl and others). MXFP4: the OCP Microscaling Formats (MX) specification, version 1.0.
#include <array>

#include "models/formats/block_formats.h"
#include "models/formats/block_reading.h"
#include "models/formats/part_scales.h"

namespace heed { inline namespace v0 { namespace models {

namespace {

using formats::ChosenNumbers;
using formats::half_power;
using formats::kIq4Numbers;
using formats::kMxfp4Numbers;

// The elements of 16 bytes: their low nibbles, then the high ones.
void choose_numbers(const std::byte* nibbles, float scale, const ChosenNumbers& numbers,
                    float* out) {
  for (int i = 0; i < 16; ++i) {
    const int pair = formats::read_byte(nibbles, i);
    out[i] = formats::scaled(scale, numbers[static_cast<std::size_t>(pair & 15)]);
    out[i + 16] = formats::scaled(scale, numbers[static_cast<std::size_t>(pair >> 4)]);
  }
}

// Float16 d, the upper two bits of eight scales of six bits, the lower four, and the nibbles.
void decode_iq4_xs_block(const std::byte* block, float* out) {
  const float d = formats::read_float16(block);
  for (int part = 0; part < 8; ++part) {
    choose_numbers(block + 8 + part * 16,
                   formats::scaled(d, formats::iq4_xs_scale(block + 2, part)), kIq4Numbers,
                   out + part * 32);
  }
}

// Digit `power` of a byte, which is a fraction of 256 with five digits of base three.
float ternary(float scale, int byte, int power) {
  constexpr std::array<int, 5> kPowers{1, 3, 9, 27, 81};
  const int rest = byte * kPowers[static_cast<std::size_t>(power)] % 256;
  return formats::scaled(scale, rest * 3 / 256 - 1);
}

// 32 bytes with five digits each, 16 with five, four with four digits, d. A digit of all bytes
// comes before the next digit.
void decode_tq1_0_block(const std::byte* block, float* out) {
  const float d = formats::read_float16(block + 52);
  const auto decode_digits = [&](int first, int count, int digits) {
    for (int power = 0; power < digits; ++power) {
      for (int i = first; i < first + count; ++i) {
        *out++ = ternary(d, formats::read_byte(block, i), power);
      }
    }
  };
  decode_digits(0, 32, 5);
  decode_digits(32, 16, 5);
  decode_digits(48, 4, 4);
}

// Two bits of each element, four elements 32 apart in a byte, d.
void decode_tq2_0_block(const std::byte* block, float* out) {
  const float d = formats::read_float16(block + 64);
  for (int i = 0; i < formats::kSuperBlock; ++i) {
    const int byte = formats::read_byte(block, i / 128 * 32 + i % 32);
    out[i] = formats::scaled(d, (byte >> i % 128 / 32 * 2 & 3) - 1);
  }
}

}  // namespace

void decode_iq4_nl(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<32, 18>(blocks, num_blocks, out, [](const std::byte* block, float* to) {
    choose_numbers(block + 2, formats::read_float16(block), kIq4Numbers, to);
  });
}

void decode_iq4_xs(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<formats::kSuperBlock, 136>(blocks, num_blocks, out, decode_iq4_xs_block);
}

void decode_mxfp4(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<32, 17>(blocks, num_blocks, out, [](const std::byte* block, float* to) {
    choose_numbers(block + 1, half_power(std::to_integer<std::uint32_t>(*block)), kMxfp4Numbers,
                   to);
  });
}

void decode_tq1_0(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<formats::kSuperBlock, 54>(blocks, num_blocks, out, decode_tq1_0_block);
}

void decode_tq2_0(const std::byte* blocks, std::int64_t num_blocks, float* out) {
  formats::decode_each<formats::kSuperBlock, 66>(blocks, num_blocks, out, decode_tq2_0_block);
}

}}}  // namespace heed::v0::models
