/// Random words from the Mersenne Twister in the order of PyTorch and NumPy.
#pragma once

#include <cstdint>

#include "heed/core/random.h"

namespace heed { inline namespace v0 {

using detail::Mt19937;

inline std::uint32_t random32(Mt19937& engine) { return engine(); }

/// Two words, the first of which is the high one.
inline std::uint64_t random64(Mt19937& engine) {
  const std::uint64_t high = random32(engine);
  return high << 32 | random32(engine);
}

}}  // namespace heed::v0
