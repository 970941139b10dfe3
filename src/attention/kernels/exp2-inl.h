// Two to the power of a vector.
#if defined(HEED_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_EXP2_INL_H_
#undef HEED_EXP2_INL_H_
#else
#define HEED_EXP2_INL_H_
#endif

#include <cstdint>

#include "heed/detail/float_math.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Vec = hn::Vec<Floats>;
inline constexpr Floats kFloats;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));

using Words = hn::Rebind<std::uint32_t, Floats>;
using WordVec = hn::Vec<Words>;
inline constexpr Words kWords;

// The smaller one of x and a number; NaN for NaN.
HWY_INLINE Vec at_most(float bound, Vec x) {
#if HWY_ARCH_ARM
  return Vec(vminq_f32(vdupq_n_f32(bound), x.raw));  // Highway's Min prefers the number to NaN
#else
  return hn::Min(hn::Set(kFloats, bound), x);  // NaN stays NaN in this order
#endif
}

// Whole numbers below 2³¹ as integers. Those of NaN end in nine zero bits: Highway's own conversion
// turns positive NaN into 2³¹ − 1.
HWY_INLINE hn::Vec<hn::RebindToSigned<Floats>> to_integers(Vec whole) {
#if HWY_TARGET == HWY_AVX2
  return hn::Vec<hn::RebindToSigned<Floats>>{_mm256_cvtps_epi32(whole.raw)};
#elif HWY_TARGET == HWY_SSE4
  return hn::Vec<hn::RebindToSigned<Floats>>{_mm_cvtps_epi32(whole.raw)};
#else
  return hn::ConvertTo(hn::RebindToSigned<Floats>(), whole);
#endif
}

// 2ˣ, within 2 ulp; exactly 1 at 0, exactly 0 below −100, NaN for NaN. For x > 127 it is
// only certain that the result is NaN or not below 2¹²⁶.
HWY_INLINE Vec exp2(Vec x) {
  constexpr auto& kCoefficients = detail::kExp2Coefficients;
#if HWY_TARGET > HWY_AVX3
  x = at_most(127.0F, x);  // beyond, the exponent would overflow; scalef gives infinity
#endif
  const Vec whole = hn::Round(x);
  const Vec r = hn::Sub(x, whole);
  Vec power = hn::Set(kFloats, kCoefficients[0]);
  for (int i = 1; i < 6; ++i) power = hn::MulAdd(power, r, hn::Set(kFloats, kCoefficients[i]));
#if HWY_TARGET <= HWY_AVX3
  const __mmask16 is_large = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-100.0F), _CMP_NLT_UQ);
  return Vec{_mm512_maskz_scalef_ps(is_large, power.raw, whole.raw)};
#else
  const hn::RebindToSigned<Floats> integers;
  const auto exponent = hn::ShiftLeft<23>(to_integers(whole));
  const Vec scaled = hn::BitCast(kFloats, hn::Add(hn::BitCast(integers, power), exponent));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(kFloats, -100.0F)), scaled);
#endif
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_EXP2_INL_H_
