// Conversion between rows of 16-bit floats and rows of floats.
#if defined(HEED_HALF_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_HALF_INL_H_
#undef HEED_HALF_INL_H_
#else
#define HEED_HALF_INL_H_
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "heed/core/data_type.h"
#include "hwy/highway.h"
#include "simd/reals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

using HalfWords = hn::Rebind<std::uint16_t, Reals>;

// Conversion of a vector of 16-bit floats, widened to 32 bits, to floats and back.
struct Float16Format {
  using Number = Float16;

  static HWY_INLINE Vec to_floats(hn::Vec<HalfWords> bits) {
#if HWY_TARGET <= HWY_AVX2
    const hn::Rebind<hwy::float16_t, Reals> halves;
    return hn::PromoteTo(kReals, hn::BitCast(halves, bits));
#else
    const Bits words;
    const auto wide = hn::PromoteTo(words, bits);
    const auto magnitude = hn::And(wide, hn::Set(words, 0x7fffU));
    const auto sign = hn::ShiftLeft<16>(hn::Xor(wide, magnitude));
    // Multiplies by 2¹¹², the difference of the exponents' biases, which is right for subnormal
    // numbers too.
    const auto scaled =
        hn::Mul(hn::BitCast(kReals, hn::ShiftLeft<13>(magnitude)), hn::Set(kReals, 0x1p112F));
    const auto is_special = hn::Gt(magnitude, hn::Set(words, 0x7bffU));
    const auto special = hn::IfThenElseZero(is_special, hn::Set(words, 0x7f800000U));
    return hn::BitCast(kReals, hn::Or(hn::Or(hn::BitCast(words, scaled), special), sign));
#endif
  }

#if HWY_TARGET <= HWY_AVX2
  static HWY_INLINE hn::Vec<HalfWords> from_floats(Vec numbers) {
    const hn::Rebind<hwy::float16_t, Reals> halves;
    return hn::BitCast(HalfWords(), hn::DemoteTo(halves, numbers));
  }
#else
  static HWY_INLINE hn::Vec<HalfWords> from_floats(Vec numbers) {
    HWY_ALIGN float floats[hn::MaxLanes(Reals())];
    HWY_ALIGN std::uint16_t bits[hn::MaxLanes(Reals())];
    hn::Store(numbers, kReals, floats);
    for (int i = 0; i < kLanes; ++i) bits[i] = Float16(floats[i]).bits();
    return hn::Load(HalfWords(), bits);
  }
#endif
};

struct BFloat16Format {
  using Number = BFloat16;

  static HWY_INLINE Vec to_floats(hn::Vec<HalfWords> bits) {
    return hn::BitCast(kReals, hn::ShiftLeft<16>(hn::PromoteTo(kBits, bits)));
  }

  static HWY_INLINE hn::Vec<HalfWords> from_floats(Vec numbers) {
    const Bits words;
    const auto bits = hn::BitCast(words, numbers);
    const auto is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1U));
    const auto rounded =
        hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(words, 0x7fffU)), is_odd));
    const auto quiet_nan = hn::Or(hn::ShiftRight<16>(bits), hn::Set(words, 0x40U));
    const auto is_nan = hn::RebindMask(words, hn::Ne(numbers, numbers));
    const auto narrow = hn::IfThenElse(is_nan, quiet_nan, rounded);
    return hn::DemoteTo(HalfWords(), hn::BitCast(Indices(), narrow));
  }
};

template <class Format>
void widen_all(const std::byte* source, std::int64_t count, float* numbers) {
  const HalfWords halves;
  const auto* bits = reinterpret_cast<const std::uint16_t*>(source);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Format::to_floats(hn::LoadU(halves, bits + i)), kReals, numbers + i);
  }
  for (; i < count; ++i) numbers[i] = Format::Number::from_bits(bits[i]);
}

template <class Format>
void narrow_all(const float* numbers, std::int64_t count, std::byte* target) {
  const HalfWords halves;
  auto* bits = reinterpret_cast<std::uint16_t*>(target);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    hn::StoreU(Format::from_floats(hn::LoadU(kReals, numbers + i)), halves, bits + i);
  }
  for (; i < count; ++i) bits[i] = typename Format::Number(numbers[i]).bits();
}

template <class Format>
void narrow_rest_of_all(const float* numbers, std::int64_t count, std::byte* target) {
  using Number = typename Format::Number;
  const HalfWords halves;
  auto* bits = reinterpret_cast<std::uint16_t*>(target);
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Vec exact = hn::LoadU(kReals, numbers + i);
    const Vec rest = hn::Sub(exact, Format::to_floats(Format::from_floats(exact)));
    const Vec finite = hn::IfThenElseZero(hn::IsFinite(rest), rest);
    hn::StoreU(Format::from_floats(finite), halves, bits + i);
  }
  for (; i < count; ++i) {
    const float rest = numbers[i] - float{Number(numbers[i])};
    bits[i] = Number(std::isfinite(rest) ? rest : 0.0F).bits();
  }
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_HALF_INL_H_
