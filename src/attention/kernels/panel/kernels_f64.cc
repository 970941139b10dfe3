// The kernels for double, of both passes: a file of their own for each would compile the products
// of panels twice.
#define HEED_REAL_BITS 64
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/panel/kernels_f64.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for each target.
#include "hwy/highway.h"

#if HEED_HAS_VECTORS

#include "attention/kernels/panel/backward_table-inl.h"
#include "attention/kernels/panel/kernel_table-inl.h"

HWY_BEFORE_NAMESPACE();
namespace heed { inline namespace v0 { namespace kernels::HWY_NAMESPACE::f64 {

const KernelTable* kernel_table() {
  static const KernelTable table = make_kernel_table(nullptr, nullptr, nullptr);
  return &table;
}

}}}  // namespace heed::v0::kernels::HWY_NAMESPACE::f64
HWY_AFTER_NAMESPACE();

#endif
