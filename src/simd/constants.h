// Constants of the kernels for a type of real numbers: for float, whose constants user's loops
// share (heed/core/dual.h), and for double.
#pragma once

#include "heed/core/dual.h"

namespace heed { inline namespace v0 { namespace kernels {

template <class Real>
struct Constants;

template <>
struct Constants<float> {
  static constexpr auto& kExp2Coefficients = detail::kExp2Coefficients;
  // 2ʳ for 0 ≤ r ≤ 1 within 2 ulp, for r = x − ⌊x⌋: of degree 5, with the constant term 1, the
  // highest coefficient first.
  static constexpr float kExp2OfFractionCoefficients[] = {
      0.0018671304F, 0.00901699439F, 0.0557999127F, 0.240164489F, 0.693151295F, 1.0F};
  static constexpr auto& kTanhCoefficients = detail::kTanhCoefficients;
  static constexpr float kHalfLn2 = detail::kHalfLn2;
  static constexpr float kTanhSaturation = detail::kTanhSaturation;
  static constexpr float kLog2E = detail::kLog2E;
  static constexpr float kLog2ERest = detail::kLog2ERest;
  static constexpr float kLog2EHigh = 0x1.714p0F;  // the first 11 bits
  // The number of fraction bits of a number.
  static constexpr int kFractionBits = 23;
  // The largest exponent of a power of 2 that is finite.
  static constexpr float kLargestPower = 127;
};

template <>
struct Constants<double> {
  // 2ʳ for −½ ≤ r ≤ ½: the minimax polynomial of degree 11 with the constant term 1, whose error is
  // at most 2⁻⁵⁵, the highest coefficient first. The error for degree 10 would be 1.3 ulp.
  static constexpr double kExp2Coefficients[] = {
      4.0780717860928705e-10, 7.072570394540799e-09, 1.0180647660573069e-07, 1.3215442675452854e-06,
      1.5252727385189775e-05, 0.0001540353044157185, 0.001333355815343997,   0.009618129107607003,
      0.05550410866479039,    0.24022650695910097,   0.6931471805599457,     1.0};
  // (1 − exp(−2r)) / r for |r| ≤ ¼ ln 2 with a relative error of at most 2⁻⁵⁵, the highest
  // coefficient first.
  static constexpr double kTanhCoefficients[] = {5.130670674231622e-05,
                                                 -0.0002828929283734412,
                                                 0.00141093963627168,
                                                 -0.006349185178314572,
                                                 0.02539682522558249,
                                                 -0.08888888916645346,
                                                 0.2666666666687304,
                                                 -0.6666666666651826,
                                                 1.333333333333325,
                                                 -2.000000000000002,
                                                 2.0};
  static constexpr double kHalfLn2 = 0.34657359027997264;
  // The least x for which tanh x rounds to 1.
  static constexpr double kTanhSaturation = 19.5;
  static constexpr double kLog2E = 1.4426950408889634;
  static constexpr double kLog2ERest = 2.0355273740931033e-17;  // log2 e − kLog2E
  static constexpr double kLog2EHigh = 0x1.715476p0;            // the first 24 bits
  static constexpr int kFractionBits = 52;
  static constexpr double kLargestPower = 1023;
};

}}}  // namespace heed::v0::kernels
