// The instruction sets for which kernels are compiled. To be included before hwy/foreach_target.h,
// which includes a file once for each of them. Highway's own list grows from version to version and
// begins with the newest: only the sets named here are compiled, in heed's order.
#pragma once

#include <cstdint>

// The sets, the best first, as USE(argument, bit, choose, name): `choose` is the macro that gives a
// function of the set, or null if the set is not compiled, and `name` that of HEED_TARGET. Sets in
// between would take compile time and gain no speed, and SVE cannot have arrays of vectors.
#define HEED_SETS(USE, argument)                     \
  USE(argument, HWY_AVX3, HWY_CHOOSE_AVX3, "AVX512") \
  USE(argument, HWY_AVX2, HWY_CHOOSE_AVX2, "AVX2")   \
  USE(argument, HWY_SSE4, HWY_CHOOSE_SSE4, "SSE4")   \
  USE(argument, HEED_NEON, HEED_CHOOSE_NEON, "NEON")

// A file for fewer sets defines HEED_TARGETS before.
#ifndef HEED_TARGETS
#define HEED_TARGETS (0 HEED_SETS(HEED_OR_BIT, 0))
#define HEED_OR_BIT(argument, bit, choose, name) | bit
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
#define HEED_NAME_IF(target, bit, choose, name) \
  if (target == bit) return name;
  HEED_SETS(HEED_NAME_IF, target)
#undef HEED_NAME_IF
  return "baseline";
}

}}}  // namespace heed::v0::kernels

// The initialiser of an array of Compiled (compiled.h), from a function that returns the table in
// the namespace of each instruction set.
#define HEED_COMPILED(function)                                              \
  {                                                                          \
    HEED_SETS(HEED_COMPILED_FOR, function) {                                 \
      ::heed::kernels::name_of_target(HWY_STATIC_TARGET), HWY_STATIC_TARGET, \
          &HWY_STATIC_DISPATCH(function)                                     \
    }                                                                        \
  }
#define HEED_COMPILED_FOR(function, bit, choose, name) {name, bit, choose(function)},
