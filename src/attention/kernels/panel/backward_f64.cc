// The kernels of the backward pass for double.
#define HEED_REAL_BITS 64
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/panel/backward_f64.cc"
#include "simd/targets.h"
// The targets come before what goes through them.
#include "hwy/foreach_target.h"
// foreach_target comes first: it includes this file once for each instruction set.
#include "hwy/highway.h"

#if HEED_HAS_VECTORS
#include "attention/kernels/panel/backward_table-inl.h"
#endif
