// What decoders of blocks read besides the elements: scales of parts, and tables of numbers.
// Source: ggml, https://github.com/ggml-org/ggml (ggml-common.h: block_q2_K to block_q6_K,
// block_iq4_xs, kvalues_iq4nl, kvalues_mxfp4). MXFP4: the OCP Microscaling Formats (MX)
// specification, version 1.0.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "models/formats/block_reading.h"

namespace heed { inline namespace v0 { namespace models { namespace formats {

// The scale and the minimum of a part of 32 elements.
struct PartScale {
  int scale;
  int minimum;
};

// Twelve bytes hold eight scales and eight minimums of six bits: bytes 0 to 3 scales 0 to 3, bytes
// 4 to 7 their minimums, bytes 8 to 11 the lower nibbles of the others, whose two upper bits are
// those of bytes 0 to 7.
inline PartScale six_bits(const std::byte* bytes, int part) {
  if (part < 4) return {read_byte(bytes, part) & 63, read_byte(bytes, part + 4) & 63};
  const int lower = read_byte(bytes, part + 4);
  const int scale_top = read_byte(bytes, part - 4) >> 6;
  const int minimum_top = read_byte(bytes, part) >> 6;
  return {(lower & 15) | scale_top << 4, lower >> 4 | minimum_top << 4};
}

// Scale p of Q3_K's sixteen with six bits: the lower four in a nibble of the first eight bytes, the
// upper two in the last four.
inline int q3_k_scale(const std::byte* bytes, int p) {
  const int lower = read_byte(bytes, p % 8) >> p / 8 * 4 & 15;
  const int upper = read_byte(bytes, 8 + p % 4) >> p / 4 * 2 & 3;
  return (lower | upper << 4) - 32;
}

// Scale p of IQ4_XS's eight with six bits: the upper two bits of all in a word, then the lower
// four.
inline int iq4_xs_scale(const std::byte* bytes, int p) {
  const int lower = read_byte(bytes, 2 + p / 2) >> p % 2 * 4 & 15;
  return (lower | (read_number<std::uint16_t>(bytes) >> p * 2 & 3) << 4) - 32;
}

// Half of 2^(e − 127), which is no normal number for e < 2.
inline float half_power(std::uint32_t e) {
  return std::bit_cast<float>(e < 2 ? 0x00200000U << e : (e - 1) << 23U);
}

using ChosenNumbers = std::array<std::int8_t, 16>;

inline constexpr ChosenNumbers kIq4Numbers{-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};
// Twice the numbers of E2M1.
inline constexpr ChosenNumbers kMxfp4Numbers{0, 1,  2,  3,  4,  6,  8,  12,
                                             0, -1, -2, -3, -4, -6, -8, -12};

}}}}  // namespace heed::v0::models::formats
