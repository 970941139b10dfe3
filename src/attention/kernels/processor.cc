#include "attention/kernels/processor.h"

namespace heed::inline v0::kernels {

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

}  // namespace

bool reads_stretches_best() { return is_of_amd(); }

bool multiplies_bfloat16_faster() {
#if defined(__aarch64__)
  return true;
#else
  return is_of_amd();
#endif
}

}  // namespace heed::inline v0::kernels
