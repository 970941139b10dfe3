// The instruction sets for which kernels are compiled. To be included before hwy/foreach_target.h,
// which includes a file once for each of them. Highway's own list grows from version to version and
// begins with the newest: only the sets named here are compiled, in heed's order.
#pragma once

#include <cstdint>

// AVX-512, AVX2, SSE4 and NEON. Sets in between would take compile time and gain no speed, and SVE
// cannot have arrays of vectors. A file for fewer sets defines HEED_TARGETS before.
#ifndef HEED_TARGETS
#define HEED_TARGETS (HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | HEED_NEON)
#endif

// CMake's HEED_INSTRUCTION_SETS leaves some out, for builds that are to be quick.
#ifndef HEED_ALLOWED_TARGETS
#define HEED_ALLOWED_TARGETS (~0)
#endif

// The baseline, which every processor of a kind has, is always compiled as well.
#define HWY_DISABLED_TARGETS (~((HEED_TARGETS & HEED_ALLOWED_TARGETS) | HWY_EMU128 | HWY_SCALAR))
#include "hwy/detect_targets.h"

// The set that every 64-bit ARM processor has. Newer versions of Highway distinguish it from NEON
// with AES, which some lack.
#ifdef HWY_NEON_WITHOUT_AES
#define HEED_NEON HWY_NEON_WITHOUT_AES
#define HEED_CHOOSE_NEON HWY_CHOOSE_NEON_WITHOUT_AES
#else
#define HEED_NEON HWY_NEON
#define HEED_CHOOSE_NEON HWY_CHOOSE_NEON
#endif

// True if the instruction set of this pass has vectors; if not, the reference computes. Such passes
// come last, so that no file is left out between two that include it.
#define HEED_HAS_VECTORS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

namespace heed { inline namespace v0 { namespace kernels {

// The name of a target in HEED_TARGET.
constexpr const char* name_of_target(std::int64_t target) {
  switch (target) {
    case HWY_AVX3:
      return "AVX512";
    case HWY_AVX2:
      return "AVX2";
    case HWY_SSE4:
      return "SSE4";
    case HEED_NEON:
      return "NEON";
    default:
      return "baseline";
  }
}

}}}  // namespace heed::v0::kernels

// The initialiser of an array of Compiled (compiled.h), from a function that returns the table in
// the namespace of each instruction set.
#define HEED_COMPILED(function)                                               \
  {                                                                           \
    HEED_COMPILED_FOR(HWY_AVX3, HWY_CHOOSE_AVX3(function)),                   \
        HEED_COMPILED_FOR(HWY_AVX2, HWY_CHOOSE_AVX2(function)),               \
        HEED_COMPILED_FOR(HWY_SSE4, HWY_CHOOSE_SSE4(function)),               \
        HEED_COMPILED_FOR(HEED_NEON, HEED_CHOOSE_NEON(function)),             \
        HEED_COMPILED_FOR(HWY_STATIC_TARGET, &HWY_STATIC_DISPATCH(function)), \
  }
#define HEED_COMPILED_FOR(target, table) \
  { ::heed::kernels::name_of_target(target), target, table }
