// The hyperbolic tangent of a vector.
#if defined(HEED_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TANH_INL_H_
#undef HEED_TANH_INL_H_
#else
#define HEED_TANH_INL_H_
#endif

#include "attention/kernels/exp2-inl.h"
#include "heed/detail/float_math.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace heed::inline v0::kernels::HWY_NAMESPACE {

// g / (2 − g) for 0 ≤ g ≤ 1, where the divisor lies between 1 and 2.
HWY_INLINE Vec tanh_quotient(Vec g) {
  const Vec divisor = hn::Sub(hn::Set(kFloats, 2.0F), g);
#if HWY_TARGET <= HWY_AVX3
  // The minimax parabola and two steps of Newton's take less than a division of 16 floats.
  const Vec one = hn::Set(kFloats, 1.0F);
  Vec inverse = hn::MulAdd(divisor, hn::Set(kFloats, 32.0F / 99), hn::Set(kFloats, -144.0F / 99));
  inverse = hn::MulAdd(inverse, divisor, hn::Set(kFloats, 210.0F / 99));
  inverse = hn::MulAdd(inverse, hn::NegMulAdd(divisor, inverse, one), inverse);
  const Vec quotient = hn::Mul(g, inverse);
  return hn::MulAdd(quotient, hn::NegMulAdd(divisor, inverse, one), quotient);
#else
  return hn::Div(g, divisor);
#endif
}

// Within 4 ulp, odd, exactly ±1 from where that is the nearest float; NaN for NaN. The arithmetic
// is that of detail::float_tanh.
HWY_INLINE Vec tanh(Vec x) {
  const auto constant = [](float value) HWY_ATTR { return hn::Set(kFloats, value); };
  const Vec magnitude = at_most(detail::kTanhSaturation, hn::Abs(x));
  // Adding this puts the nearest whole number into the lowest bits.
  const Vec shift = constant(0x1.8p23F);
  const Vec shifted = hn::MulAdd(magnitude, constant(-2 * detail::kLog2E), shift);
  const Vec r = hn::MulAdd(hn::Sub(shifted, shift), constant(detail::kHalfLn2), magnitude);
  Vec polynomial = constant(detail::kTanhCoefficients[0]);
  for (int i = 1; i < 6; ++i) {
    polynomial = hn::MulAdd(polynomial, r, constant(detail::kTanhCoefficients[i]));
  }
  const hn::RebindToSigned<Floats> integers;
  const Vec one = constant(1.0F);
  const Vec power = hn::BitCast(
      kFloats,
      hn::Add(hn::BitCast(integers, one), hn::ShiftLeft<23>(hn::BitCast(integers, shifted))));
  const Vec g = hn::MulAdd(hn::Mul(polynomial, r), power, hn::Sub(one, power));
  return hn::CopySign(tanh_quotient(g), x);
}

}  // namespace heed::inline v0::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TANH_INL_H_
