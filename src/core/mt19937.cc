#include "core/mt19937.h"

namespace heed { inline namespace v0 { namespace detail {

Mt19937::Mt19937(std::uint32_t seed) : next(kSize) {
  words[0] = seed;
  for (std::uint32_t i = 1; i < kSize; ++i) {
    words[i] = 1812433253U * (words[i - 1] ^ words[i - 1] >> 30) + i;
  }
}

void Mt19937::refill() {
  constexpr std::size_t kShift = 397;
  constexpr std::uint32_t kHighest = 0x80000000U;
  for (std::size_t i = 0; i < kSize; ++i) {
    const std::uint32_t following = words[i + 1 < kSize ? i + 1 : 0];
    const std::uint32_t mixed = (words[i] & kHighest) | (following & (kHighest - 1));
    const std::uint32_t shifted = words[i + kShift < kSize ? i + kShift : i + kShift - kSize];
    words[i] = shifted ^ mixed >> 1 ^ (mixed % 2 * 0x9908b0dfU);
  }
  next = 0;
}

}}}  // namespace heed::v0::detail
