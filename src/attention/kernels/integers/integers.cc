// Products with 8-bit and 4-bit numbers, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/integers/integers.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for each target.
#include "attention/kernels/integers/integers.h"
#include "hwy/highway.h"

#if HEED_HAS_VECTORS
#include "attention/kernels/integers/integers-inl.h"
#endif
