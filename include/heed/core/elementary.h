/// Elementary functions whose results have the same bits with every compiler, C library and
/// processor.
#pragma once

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// Those of C libraries differ in the last bit. These use nothing but the basic operations of IEEE
/// 754, which all processors round alike. They expect numbers to be rounded to nearest and
/// subnormal ones to be kept: the mode in which programs start.
///
/// For double the error is below 0.54 units in the last place. For float they compute in double and
/// round once, which is the nearest number, but for about one argument in 10⁸. Infinities, NaN,
/// zeros and arguments outside the domain have the results that the standard of C (annex F)
/// names. Which NaN a result is, is left open.
namespace elementary {

HEED_API double exp(double x) noexcept;
HEED_API float exp(float x) noexcept;

/// 2ˣ, exact where x is whole.
HEED_API double exp2(double x) noexcept;
HEED_API float exp2(float x) noexcept;

/// The natural logarithm.
HEED_API double log(double x) noexcept;
HEED_API float log(float x) noexcept;

/// Exact for powers of 2.
HEED_API double log2(double x) noexcept;
HEED_API float log2(float x) noexcept;

/// log(1 + x), also where 1 + x rounds to 1.
HEED_API double log1p(double x) noexcept;
HEED_API float log1p(float x) noexcept;

HEED_API double pow(double x, double y) noexcept;
HEED_API float pow(float x, float y) noexcept;

/// Of any angle in radians, as large as it may be.
HEED_API double sin(double x) noexcept;
HEED_API float sin(float x) noexcept;
HEED_API double cos(double x) noexcept;
HEED_API float cos(float x) noexcept;

HEED_API double tanh(double x) noexcept;
HEED_API float tanh(float x) noexcept;

}  // namespace elementary

}}  // namespace heed::v0
