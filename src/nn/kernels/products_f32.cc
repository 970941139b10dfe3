// Matrix products of float, for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "nn/kernels/products_f32.cc"
#include "simd/targets.h"
// The list of targets must be known before the includes that iterate over it.
#include "hwy/foreach_target.h"
// foreach_target must be first: it includes this file once for each instruction set.
#include "nn/kernels/product_table-inl.h"
