// Products with 8-bit and 4-bit numbers, compiled once more for AVX-512 with AVX512_VNNI, which
// multiplies quads of bytes. Highway's targets have it only together with much more.
#define HEED_OF_QUADS
#define HEED_TARGETS HWY_AVX3
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/integers/quads.cc"
#include "simd/targets.h"
// simd/targets.h must come first: it sets the targets of foreach_target.h.
#include "hwy/foreach_target.h"
// foreach_target.h must come before other headers: it includes this file once for AVX-512, its only
// target.
#include "attention/kernels/integers/integers.h"
#include "attention/kernels/integers/quads.h"
#include "hwy/highway.h"

#if HWY_TARGET == HWY_AVX3

#undef HWY_TARGET_STR
#define HWY_TARGET_STR HWY_TARGET_STR_AVX3 ",avx512vnni"

#include "attention/kernels/integers/integers-inl.h"

namespace heed { inline namespace v0 { namespace kernels {

bool has_quad_products() {
  __builtin_cpu_init();
  return __builtin_cpu_supports("avx512vnni") != 0;
}

const KernelTable* with_quad_products(const KernelTable& table) {
  static const KernelTable quads = [&table] {
    KernelTable result = table;
    result.name = "AVX512_VNNI";
    result.integers = HWY_NAMESPACE::quads::integer_table();
    return result;
  }();
  return &quads;
}

}}}  // namespace heed::v0::kernels

#elif HWY_ONCE && !(HWY_TARGETS & HWY_AVX3)

namespace heed { inline namespace v0 { namespace kernels {

bool has_quad_products() { return false; }
const KernelTable* with_quad_products(const KernelTable& table) { return &table; }

}}}  // namespace heed::v0::kernels

#endif
