#include "heed/core/processor.h"

namespace heed { inline namespace v0 {

std::vector<std::string> supported_instruction_sets() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_avx512) names.emplace_back("AVX-512");
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) names.emplace_back("AVX2");
  if (__builtin_cpu_supports("sse4.1")) names.emplace_back("SSE4");
#elif defined(__aarch64__)
  names.emplace_back("NEON");
#endif
  return names;
}

}}  // namespace heed::v0
