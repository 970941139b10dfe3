// Products with numbers of eight and four bits, for every instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/integers/integers.cc"
#include "simd/targets.h"
// The targets come before what goes through them.
#include "hwy/foreach_target.h"
// foreach_target comes first: it includes this file once for each instruction set.
#include "attention/kernels/integers/integers.h"
#include "hwy/highway.h"

#if HEED_HAS_VECTORS
#include "attention/kernels/integers/integers-inl.h"
#endif
