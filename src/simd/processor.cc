#include "simd/processor.h"

#include "simd/targets.h"
// simd/targets.h must come first, as it sets the targets of Highway.
#include "hwy/targets.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace heed { inline namespace v0 { namespace kernels {

namespace {

bool is_of_amd() {
#if defined(__x86_64__) || defined(__i386__)
  static const bool is_amd = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") != 0;
  }();
  return is_amd;
#else
  return false;
#endif
}

// The number of the family of an x86 processor; 0 for others.
unsigned family() {
#if defined(__x86_64__) || defined(__i386__)
  unsigned version = 0;
  unsigned other = 0;
  if (__get_cpuid(1, &version, &other, &other, &other) == 0) return 0;
  // If all bits of the first field are set, a second field is added.
  const unsigned base = version >> 8 & 0xf;
  return base == 0xf ? base + (version >> 20 & 0xff) : base;
#else
  return 0;
#endif
}

}  // namespace

std::int64_t supported_targets() {
  static const std::int64_t targets = hwy::SupportedTargets() | HWY_STATIC_TARGET;
  return targets;
}

Stretches best_reading_of_stretches() {
  constexpr unsigned kZen5 = 0x1a;
  static const Stretches best = !is_of_amd()        ? Stretches::kGroupsInTurn
                                : family() >= kZen5 ? Stretches::kInOrderFetched
                                                    : Stretches::kInOrder;
  return best;
}

bool multiplies_bfloat16_faster() {
#if defined(__aarch64__)
  return true;
#else
  return is_of_amd();
#endif
}

}}}  // namespace heed::v0::kernels
