// The hyperbolic tangent of a vector.
#if defined(HEED_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HEED_TANH_INL_H_
#undef HEED_TANH_INL_H_
#else
#define HEED_TANH_INL_H_
#endif

#include <cstdint>
#include <iterator>

#include "hwy/highway.h"
#include "simd/constants.h"
#include "simd/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE {

// g / (2 − g) for 0 ≤ g ≤ 1; the divisor is between 1 and 2.
HWY_INLINE Vec tanh_quotient(Vec g) {
  const Vec divisor = hn::Sub(hn::Set(kReals, 2.0F), g);
#if HWY_NATIVE_FMA && HEED_REAL_BITS == 32
  // A minimax parabola and two of Newton's iterations are faster than a division of floats. All
  // instruction sets with fused multiply-adds compute so, for equal bits.
  const Vec one = hn::Set(kReals, 1.0F);
  Vec inverse = hn::MulAdd(divisor, hn::Set(kReals, 32.0F / 99), hn::Set(kReals, -144.0F / 99));
  inverse = hn::MulAdd(inverse, divisor, hn::Set(kReals, 210.0F / 99));
  inverse = hn::MulAdd(inverse, hn::NegMulAdd(divisor, inverse, one), inverse);
  const Vec quotient = hn::Mul(g, inverse);
  return hn::MulAdd(quotient, hn::NegMulAdd(divisor, inverse, one), quotient);
#else
  return hn::Div(g, divisor);
#endif
}

// tanh within 4 ulp; an odd function, exactly ±1 from where that is the nearest number, and NaN for
// NaN. The arithmetic is that of detail::float_tanh.
HWY_INLINE Vec tanh(Vec x) {
  using Numbers = Constants<Real>;
  constexpr auto& kCoefficients = Numbers::kTanhCoefficients;
  const auto constant = [](Real value) HWY_ATTR { return hn::Set(kReals, value); };
  const Vec magnitude = at_most(Numbers::kTanhSaturation, hn::Abs(x));
  // Adding this number rounds to a whole number in the lowest bits.
  const Vec shift = constant(1.5F * static_cast<Real>(std::int64_t{1} << Numbers::kFractionBits));
  const Vec shifted = hn::MulAdd(magnitude, constant(-2 * Numbers::kLog2E), shift);
  const Vec r = hn::MulAdd(hn::Sub(shifted, shift), constant(Numbers::kHalfLn2), magnitude);
  Vec polynomial = constant(kCoefficients[0]);
  for (std::size_t i = 1; i < std::size(kCoefficients); ++i) {
    polynomial = hn::MulAdd(polynomial, r, constant(kCoefficients[i]));
  }
  const Vec one = constant(1.0F);
  const IntegerVec exponent =
      hn::ShiftLeft<Numbers::kFractionBits>(hn::BitCast(Integers(), shifted));
  const Vec power = hn::BitCast(kReals, hn::Add(hn::BitCast(Integers(), one), exponent));
  const Vec g = hn::MulAdd(hn::Mul(polynomial, r), power, hn::Sub(one, power));
  return hn::CopySign(tanh_quotient(g), x);
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::HEED_REAL_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HEED_TANH_INL_H_
