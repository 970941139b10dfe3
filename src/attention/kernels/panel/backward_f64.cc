// The kernels of the backward pass for double.
#define HEED_REAL_BITS 64
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/panel/backward_f64.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for each target.
#include "hwy/highway.h"

#if HEED_HAS_VECTORS
#include "attention/kernels/panel/backward_table-inl.h"
#endif
