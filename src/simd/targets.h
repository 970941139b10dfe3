// The instruction sets that kernels are compiled for. A file that hwy/foreach_target.h includes
// once for each of them includes this one before. Highway's own list grows from version to version,
// and begins with what is new: none that is not named here is compiled, and heed's order is its
// own.
#pragma once

#include <cstdint>

// AVX-512, AVX2, SSE4 and NEON: those in between cost compile time and bring no speed, and arrays
// of vectors rule out SVE. A file for fewer of them says so before.
#ifndef HEED_TARGETS
#define HEED_TARGETS (HWY_AVX3 | HWY_AVX2 | HWY_SSE4 | HEED_NEON)
#endif

// Beside them there is the baseline, what every processor of this kind has.
#define HWY_DISABLED_TARGETS (~(HEED_TARGETS | HWY_EMU128 | HWY_SCALAR))
#include "hwy/detect_targets.h"

// What every ARM of 64 bits has. Newer versions of Highway tell it from what some lack, AES.
#ifdef HWY_NEON_WITHOUT_AES
#define HEED_NEON HWY_NEON_WITHOUT_AES
#define HEED_CHOOSE_NEON HWY_CHOOSE_NEON_WITHOUT_AES
#else
#define HEED_NEON HWY_NEON
#define HEED_CHOOSE_NEON HWY_CHOOSE_NEON
#endif

// Whether the instruction set of this pass has vectors. Where there is none, the reference
// computes. Such passes come last, so that no file is left out between two that include it.
#define HEED_HAS_VECTORS (HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128)

namespace heed { inline namespace v0 { namespace kernels {

// As HEED_TARGET calls it.
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

// An array of Compiled (compiled.h): of `function`, which returns the table in the namespace of
// each instruction set.
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
