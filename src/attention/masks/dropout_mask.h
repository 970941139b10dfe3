// Dropout by counters: a weight is dropped or kept depending on its indices and the seed alone.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>

#include "core/philox.h"
#include "heed/attention.h"
#include "heed/attention/score_mod.h"

namespace heed { inline namespace v0 {

// Dropout with its probability rounded to 16 bits. One counter gives the random bits of eight
// neighbouring keys of a query, 16 for each.
class DropoutMask {
 public:
  explicit DropoutMask(const Dropout& dropout)
      : key_{static_cast<std::uint32_t>(dropout.seed),
             static_cast<std::uint32_t>(dropout.seed >> 32)},
        threshold_(static_cast<std::uint32_t>(std::lround(dropout.probability * kSteps))) {}

  bool keeps_everything() const { return threshold_ == 0; }

  // A weight is dropped if its 16-bit number is below `threshold`, and otherwise multiplied by
  // `kept_factor`.
  std::array<std::uint32_t, 2> key() const { return key_; }
  std::uint32_t threshold() const { return threshold_; }
  double kept_factor() const { return kSteps / (kSteps - threshold_); }

  using Words = std::array<std::uint32_t, 4>;

  // The random bits of the eight keys that have the same kv_idx / 8 as `at`.
  Words words(const ScorePosition& at) const {
    return philox({static_cast<std::uint32_t>(at.kv_idx) / 8, static_cast<std::uint32_t>(at.q_idx),
                   static_cast<std::uint32_t>(at.head), static_cast<std::uint32_t>(at.batch)},
                  key_);
  }

  // The factor of the weight of key kv_idx, from the words of its eight keys: 0 or 1 / (1 −
  // probability).
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
  std::uint32_t threshold_;  // the number of 16-bit numbers, of kSteps, that drop a weight
};

}}  // namespace heed::v0
