// Counter-based random numbers: each is a function of its place.
#pragma once

#include <array>
#include <cstdint>

namespace heed { inline namespace v0 {

inline constexpr int kPhiloxRounds = 10;
inline constexpr std::uint32_t kPhiloxFactor0 = 0xD2511F53U;
inline constexpr std::uint32_t kPhiloxFactor1 = 0xCD9E8D57U;

// The key of each round.
constexpr std::array<std::uint32_t, 2> philox_round_key(std::array<std::uint32_t, 2> key,
                                                        int round) {
  const auto step = static_cast<std::uint32_t>(round);
  return {key[0] + step * 0x9E3779B9U, key[1] + step * 0xBB67AE85U};
}

// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): four random
// words from a counter of four words and a key of two.
constexpr std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                              std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{kPhiloxFactor0} * counter[0];
    const std::uint64_t product1 = std::uint64_t{kPhiloxFactor1} * counter[2];
    const auto [key0, key1] = philox_round_key(key, round);
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key0,
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key1,
               static_cast<std::uint32_t>(product0)};
  }
  return counter;
}

}}  // namespace heed::v0
