// Conversion of blocks of weights to floats. The layouts are those of models/formats, whose plain
// loops have the same bits: a scale times an integer is exact, so that an element is rounded once.
#if defined(HEED_MODELS_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_MODELS_BLOCKS_INL_H_
#undef HEED_MODELS_BLOCKS_INL_H_
#else
#define HEED_MODELS_BLOCKS_INL_H_
#endif

#include "models/formats/part_scales.h"
#include "models/kernels/sixteen-inl.h"
#include "models/kernels/stored-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace models::HWY_NAMESPACE {

using IntegerVec = hn::Vec<Integers>;

// The field of `mask` in kLanes bytes, shifted to the lowest bits.
HWY_INLINE WordVec bits_of(const std::byte* at, int shift, std::uint32_t mask) {
  const WordVec words =
      hn::PromoteTo(Words(), hn::LoadU(Bytes(), reinterpret_cast<const std::uint8_t*>(at)));
  return hn::And(hn::ShiftRightSame(words, shift), hn::Set(Words(), mask));
}

HWY_INLINE Vec to_floats(WordVec words, int added) {
  return hn::ConvertTo(kFloats,
                       hn::Add(hn::BitCast(Integers(), words), hn::Set(Integers(), added)));
}

// out[i] = scale · q(i) − minimum for 0 ≤ i < 16 · count; q(i) returns kLanes integers as floats.
template <class Field>
HWY_INLINE void store_sixteens(int count, float scale, float minimum, const Field& q, float* out) {
  const Vec scales = hn::Set(kFloats, scale);
  const Vec minimums = hn::Set(kFloats, minimum);
  for (int i = 0; i < count * kSixteen; i += kLanes) {
    hn::StoreU(hn::MulSub(q(i), scales, minimums), kFloats, out + i);
  }
}

// out[i] = scale · q(i). A product of −0 keeps its sign, which a sum with 0 would not.
template <class Field>
HWY_INLINE void store_sixteens(int count, float scale, const Field& q, float* out) {
  const Vec scales = hn::Set(kFloats, scale);
  for (int i = 0; i < count * kSixteen; i += kLanes) {
    hn::StoreU(hn::Mul(q(i), scales), kFloats, out + i);
  }
}

HWY_INLINE float half_at(const std::byte* at) { return formats::read_float16(at); }

template <bool kHasFifthBit>
HWY_INLINE void decode_q45_k(const std::byte* block, float* out) {
  const float d = half_at(block);
  const float minimum_unit = half_at(block + 2);
  const std::byte* const nibbles = block + (kHasFifthBit ? 48 : 16);
  for (int part = 0; part < 8; ++part) {
    const formats::PartScale six = formats::six_bits(block + 4, part);
    const std::byte* const pairs = nibbles + part / 2 * 32;
    store_sixteens(
        2, formats::scaled(d, six.scale), formats::scaled(minimum_unit, six.minimum),
        [&](int i) HWY_ATTR {
          WordVec q = bits_of(pairs + i, part % 2 * 4, 15);
          if constexpr (kHasFifthBit) {
            q = hn::Or(q, hn::ShiftLeft<4>(bits_of(block + 16 + i, part, 1)));
          }
          return to_floats(q, 0);
        },
        out + part * 32);
  }
}

// The two bits of elements i … of part p of 16 elements, in 64 bytes.
HWY_INLINE WordVec two_bits_of(const std::byte* bytes, int p, int i) {
  return bits_of(bytes + p / 8 * 32 + p % 2 * 16 + i, p % 8 / 2 * 2, 3);
}

HWY_INLINE void decode_q2_k_vectors(const std::byte* block, float* out) {
  const float d = half_at(block + 80);
  const float minimum_unit = half_at(block + 82);
  for (int p = 0; p < 16; ++p) {
    const int pair = formats::read_byte(block, p);
    store_sixteens(
        1, formats::scaled(d, pair & 15), formats::scaled(minimum_unit, pair >> 4),
        [&](int i) HWY_ATTR { return to_floats(two_bits_of(block + 16, p, i), 0); }, out + p * 16);
  }
}

HWY_INLINE void decode_q3_k_vectors(const std::byte* block, float* out) {
  const float d = half_at(block + 108);
  for (int p = 0; p < 16; ++p) {
    store_sixteens(
        1, formats::scaled(d, formats::q3_k_scale(block + 96, p)),
        [&](int i) HWY_ATTR {
          const WordVec third = bits_of(block + p % 2 * 16 + i, p / 2, 1);
          return to_floats(hn::Or(two_bits_of(block + 32, p, i), hn::ShiftLeft<2>(third)), -4);
        },
        out + p * 16);
  }
}

HWY_INLINE void decode_q6_k_vectors(const std::byte* block, float* out) {
  const float d = half_at(block + 208);
  for (int p = 0; p < 16; ++p) {
    const std::byte* const lower = block + p / 8 * 64 + p % 4 * 16;
    store_sixteens(
        1, formats::scaled(d, formats::read_number<std::int8_t>(block + 192 + p)),
        [&](int i) HWY_ATTR {
          const WordVec upper = two_bits_of(block + 128, p, i);
          return to_floats(hn::Or(bits_of(lower + i, p % 8 / 4 * 4, 15), hn::ShiftLeft<4>(upper)),
                           -32);
        },
        out + p * 16);
  }
}

// Stores 32 elements q = nibble + highest bit · 16 + added, whose highest bits are in a word.
template <bool kHasMinimum>
HWY_INLINE void decode_q5_vectors(const std::byte* block, float* out) {
  const float scale = half_at(block);
  const std::byte* const bits = block + (kHasMinimum ? 4 : 2);
  const auto high = hn::Set(Words(), formats::read_number<std::uint32_t>(bits));
  for (int half = 0; half < 2; ++half) {
    const auto q = [&](int i) HWY_ATTR {
      const auto lane = static_cast<std::uint32_t>(half * kSixteen + i);
      const WordVec fifth = hn::And(hn::Shr(high, hn::Iota(Words(), lane)), hn::Set(Words(), 1U));
      const WordVec nibble = bits_of(bits + 4 + i, half * 4, 15);
      return to_floats(hn::Or(nibble, hn::ShiftLeft<4>(fifth)), kHasMinimum ? 0 : -16);
    };
    if constexpr (kHasMinimum) {
      store_sixteens(1, scale, -half_at(block + 2), q, out + half * kSixteen);
    } else {
      store_sixteens(1, scale, q, out + half * kSixteen);
    }
  }
}

// The elements of 16 bytes, whose nibbles choose numbers: the low ones, then the high ones.
HWY_INLINE void choose_vectors(const std::byte* nibbles, float scale,
                               const formats::ChosenNumbers& numbers, float* out) {
  const hn::FixedTag<std::uint8_t, 16> bytes;
  const hn::FixedTag<std::int8_t, 16> signed_bytes;
  const auto pairs = hn::LoadU(bytes, reinterpret_cast<const std::uint8_t*>(nibbles));
  const auto table = hn::LoadU(signed_bytes, numbers.data());
  const auto low = hn::And(pairs, hn::Set(bytes, std::uint8_t{15}));
  HWY_ALIGN std::int8_t chosen[32];
  hn::Store(hn::TableLookupBytes(table, hn::BitCast(signed_bytes, low)), signed_bytes, chosen);
  hn::Store(hn::TableLookupBytes(table, hn::BitCast(signed_bytes, hn::ShiftRight<4>(pairs))),
            signed_bytes, chosen + 16);
  store_sixteens(
      2, scale,
      [&](int i) HWY_ATTR {
        return hn::ConvertTo(kFloats,
                             hn::PromoteTo(Integers(), hn::LoadU(SignedBytes(), chosen + i)));
      },
      out);
}

HWY_INLINE void decode_iq4_nl_vectors(const std::byte* block, float* out) {
  choose_vectors(block + 2, half_at(block), formats::kIq4Numbers, out);
}

HWY_INLINE void decode_iq4_xs_vectors(const std::byte* block, float* out) {
  const float d = half_at(block);
  for (int part = 0; part < 8; ++part) {
    choose_vectors(block + 8 + part * 16,
                   formats::scaled(d, formats::iq4_xs_scale(block + 2, part)), formats::kIq4Numbers,
                   out + part * 32);
  }
}

HWY_INLINE void decode_mxfp4_vectors(const std::byte* block, float* out) {
  choose_vectors(block + 1, formats::half_power(std::to_integer<std::uint32_t>(*block)),
                 formats::kMxfp4Numbers, out);
}

HWY_INLINE void decode_tq2_0_vectors(const std::byte* block, float* out) {
  const float d = half_at(block + 64);
  for (int p = 0; p < 16; ++p) {
    store_sixteens(
        1, d, [&](int i) HWY_ATTR { return to_floats(two_bits_of(block, p, i), -1); },
        out + p * 16);
  }
}

// The decoder of a type, a block at a time, and the elements and bytes of a block.
using DecodeBlock = void (*)(const std::byte* block, float* out);

template <WeightType kType, DecodeBlock kDecode>
void decode_each_block(const std::byte* bytes, std::int64_t count, float* out) {
  constexpr WeightFormat kFormat = format_of(kType);
  for (std::int64_t i = 0; i < count; i += kFormat.block_elements) {
    kDecode(bytes, out + i);
    bytes += kFormat.block_bytes;
  }
}

struct VectorDecoder {
  WeightType type;
  void (*decode)(const std::byte* bytes, std::int64_t count, float* out);
};

// Types that are not here are converted by plain loops.
inline constexpr VectorDecoder kVectorDecoders[] = {
    {WeightType::kQ5_0, decode_each_block<WeightType::kQ5_0, decode_q5_vectors<false>>},
    {WeightType::kQ5_1, decode_each_block<WeightType::kQ5_1, decode_q5_vectors<true>>},
    {WeightType::kQ2_K, decode_each_block<WeightType::kQ2_K, decode_q2_k_vectors>},
    {WeightType::kQ3_K, decode_each_block<WeightType::kQ3_K, decode_q3_k_vectors>},
    {WeightType::kQ4_K, decode_each_block<WeightType::kQ4_K, decode_q45_k<false>>},
    {WeightType::kQ5_K, decode_each_block<WeightType::kQ5_K, decode_q45_k<true>>},
    {WeightType::kQ6_K, decode_each_block<WeightType::kQ6_K, decode_q6_k_vectors>},
    {WeightType::kIQ4_NL, decode_each_block<WeightType::kIQ4_NL, decode_iq4_nl_vectors>},
    {WeightType::kIQ4_XS, decode_each_block<WeightType::kIQ4_XS, decode_iq4_xs_vectors>},
    {WeightType::kMXFP4, decode_each_block<WeightType::kMXFP4, decode_mxfp4_vectors>},
    {WeightType::kTQ2_0, decode_each_block<WeightType::kTQ2_0, decode_tq2_0_vectors>},
};

}}}  // namespace heed::v0::models::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_MODELS_BLOCKS_INL_H_
