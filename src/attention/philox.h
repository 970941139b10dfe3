// Dropout by counters: which weights fall is a function of where they stand.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "heed/attention.h"
#include "heed/score_mod.h"

namespace heed::inline v0 {

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

// Dropout with its probability rounded to 16 bits. One counter serves eight neighbouring keys of a
// query, 16 bits each.
class DropoutMask {
 public:
  explicit DropoutMask(const Dropout& dropout)
      : key_{static_cast<std::uint32_t>(dropout.seed),
             static_cast<std::uint32_t>(dropout.seed >> 32)},
        threshold_(static_cast<std::uint32_t>(std::lround(dropout.probability * kSteps))) {}

  bool keeps_everything() const { return threshold_ == 0; }

  // What decides: a 16-bit number below `threshold` means "drop", and `kept_factor` is what a
  // weight that is kept is multiplied by.
  std::array<std::uint32_t, 2> key() const { return key_; }
  std::uint32_t threshold() const { return threshold_; }
  double kept_factor() const { return kSteps / (kSteps - threshold_); }

  using Words = std::array<std::uint32_t, 4>;

  // The random bits of the eight keys that share a counter with `at`: kv_idx / 8 tells them apart.
  Words words(const ScorePosition& at) const {
    return philox({static_cast<std::uint32_t>(at.kv_idx) / 8, static_cast<std::uint32_t>(at.q_idx),
                   static_cast<std::uint32_t>(at.head), static_cast<std::uint32_t>(at.batch)},
                  key_);
  }

  // What the weight of key kv_idx is multiplied by, given its words: 0, or 1 / (1 − probability).
  double factor(const Words& words, std::int32_t kv_idx) const {
    if (threshold_ == 0) return 1;
    const std::uint32_t lane = static_cast<std::uint32_t>(kv_idx) % 8;
    const std::uint32_t bits = words[lane / 2] >> (lane % 2 * 16) & 0xffffU;
    return bits < threshold_ ? 0 : kept_factor();
  }

  double factor(const ScorePosition& at) const {
    return threshold_ == 0 ? 1 : factor(words(at), at.kv_idx);
  }

 private:
  static constexpr double kSteps = 65536;

  std::array<std::uint32_t, 2> key_;
  std::uint32_t threshold_;  // of kSteps: how many of the 16-bit numbers mean "drop"
};

}  // namespace heed::inline v0
