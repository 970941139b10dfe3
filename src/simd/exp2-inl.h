// Two to the power of a vector.
#if defined(HEED_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_EXP2_INL_H_
#undef HEED_EXP2_INL_H_
#else
#define HEED_EXP2_INL_H_
#endif

#include <cstdint>
#include <iterator>

#include "hwy/highway.h"
#include "simd/constants.h"
#include "simd/product-inl.h"
#include "simd/reals-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// The smaller of x and a number; NaN for NaN.
HWY_INLINE Vec at_most(Real bound, Vec x) {
#if HWY_ARCH_ARM && HEED_REAL_BITS == 32
  // Highway's Min would return the number for NaN
  return Vec(vminq_f32(vdupq_n_f32(bound), x.raw));
#elif HWY_ARCH_ARM
  return Vec(vminq_f64(vdupq_n_f64(bound), x.raw));
#else
  return hn::Min(hn::Set(kReals, bound), x);  // NaN stays NaN in this order
#endif
}

// Integers of the size of a number.
using Integers = hn::RebindToSigned<Reals>;
using IntegerVec = hn::Vec<Integers>;

// Whole numbers below 2³¹ as integers. For NaN the result ends in nine zero bits, for doubles in
// twelve; Highway's own conversion turns positive NaN into 2³¹ − 1.
HWY_INLINE IntegerVec to_integers(Vec whole) {
#if HWY_TARGET == HWY_AVX2 && HEED_REAL_BITS == 32
  return IntegerVec{_mm256_cvtps_epi32(whole.raw)};
#elif HWY_TARGET == HWY_AVX2
  return IntegerVec{_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(whole.raw))};
#elif HWY_TARGET == HWY_SSE4 && HEED_REAL_BITS == 32
  return IntegerVec{_mm_cvtps_epi32(whole.raw)};
#elif HWY_TARGET == HWY_SSE4
  return IntegerVec{_mm_cvtepi32_epi64(_mm_cvtpd_epi32(whole.raw))};
#else
  return hn::ConvertTo(Integers(), whole);
#endif
}

// exp2(x) is 2ˣ within 2.5 ulp, in the kernels for AMX tiles within 2.7 ulp, for doubles within 1.5
// ulp. It is exactly 1 at 0, exactly 0 below −100, and NaN for NaN. Above kLargestPower the result
// is NaN or at least half of 2^kLargestPower.
#if HEED_HAS_TILES

// 2ˣ = 2ʳ · 2^⌊x⌋ with r = x − ⌊x⌋. The last instruction computes the floor itself, which saves an
// instruction compared with the nearest whole number. It is slightly less accurate, for weights of
// which bfloat16 keeps 8 bits.
HWY_INLINE Vec exp2(Vec x) {
  constexpr auto& kCoefficients = Constants<Real>::kExp2OfFractionCoefficients;
  const Vec r{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEG_INF)};
  Vec power = hn::Set(kReals, kCoefficients[0]);
  for (std::size_t i = 1; i < std::size(kCoefficients); ++i) {
    power = hn::MulAdd(power, r, hn::Set(kReals, kCoefficients[i]));
  }
  const __mmask16 is_large = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-100.0F), _CMP_NLT_UQ);
  return Vec{_mm512_maskz_scalef_ps(is_large, power.raw, x.raw)};
}

#else

HWY_INLINE Vec exp2(Vec x) {
  constexpr auto& kCoefficients = Constants<Real>::kExp2Coefficients;
#if HWY_TARGET > HWY_AVX3 || HEED_REAL_BITS == 64
  x = at_most(Constants<Real>::kLargestPower, x);  // scalef gives infinity on overflow
#endif
#if HWY_TARGET <= HWY_AVX3 && HEED_REAL_BITS == 32
  // One instruction for r, while rounding takes two on Intel processors.
  const Vec r{_mm512_reduce_ps(x.raw, _MM_FROUND_TO_NEAREST_INT)};
  const Vec whole = hn::Sub(x, r);
#else
  const Vec whole = hn::Round(x);
  const Vec r = hn::Sub(x, whole);
#endif
  Vec power = hn::Set(kReals, kCoefficients[0]);
  for (std::size_t i = 1; i < std::size(kCoefficients); ++i) {
    power = hn::MulAdd(power, r, hn::Set(kReals, kCoefficients[i]));
  }
#if HWY_TARGET <= HWY_AVX3 && HEED_REAL_BITS == 32
  const __mmask16 is_large = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-100.0F), _CMP_NLT_UQ);
  return Vec{_mm512_maskz_scalef_ps(is_large, power.raw, whole.raw)};
#else
  const IntegerVec exponent = hn::ShiftLeft<Constants<Real>::kFractionBits>(to_integers(whole));
  const Vec scaled = hn::BitCast(kReals, hn::Add(hn::BitCast(Integers(), power), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(kReals, -100.0F)), scaled);
#endif
}

#endif

// 2ˣ for numbers that may be above kLargestPower, for which it is 2^kLargestPower or NaN with every
// instruction set.
HWY_INLINE Vec bounded_exp2(Vec x) {
#if HWY_TARGET <= HWY_AVX3 && HEED_REAL_BITS == 32
  x = at_most(Constants<Real>::kLargestPower, x);
#endif
  return exp2(x);
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_EXP2_INL_H_
