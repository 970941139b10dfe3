// Sets of keys of a tile, as bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "attention/kernels/score_loops.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace detail {

// A set of keys of a tile: bit j is key j. Empty by default.
class KeyBits {
 public:
  static KeyBits all() { return between(0, kernels::kTileKeys); }
  // The keys begin ≤ j < end; both may lie outside the tile.
  static KeyBits between(std::int64_t begin, std::int64_t end) {
    const std::uint64_t words[] = {up_to(end) & ~up_to(begin),
                                   up_to(end - 64) & ~up_to(begin - 64)};
    return {words[0], words[1]};
  }
  // Every step-th key of the tile, from the first on.
  static KeyBits in_steps(std::int64_t step) {
    KeyBits keys;
    for (std::int64_t j = 0; j < kernels::kTileKeys; j += step) keys.set(j);
    return keys;
  }

  void set(std::int64_t j) { words_[word(j)] |= bit(j); }
  void clear(std::int64_t j) { words_[word(j)] &= ~bit(j); }
  bool has(std::int64_t j) const { return (words_[word(j)] & bit(j)) != 0; }
  bool is_empty() const { return (words_[0] | words_[1]) == 0; }
  std::int32_t count() const { return std::popcount(words_[0]) + std::popcount(words_[1]); }
  // The first key of the set, which must not be empty.
  std::int32_t first() const {
    return words_[0] != 0 ? std::countr_zero(words_[0]) : 64 + std::countr_zero(words_[1]);
  }
  std::int32_t last() const {
    return words_[1] != 0 ? 127 - std::countl_zero(words_[1]) : 63 - std::countl_zero(words_[0]);
  }
  // Half 0 has keys 0 to 63, half 1 the others.
  std::uint64_t half(int i) const { return words_[static_cast<std::size_t>(i)]; }

  KeyBits operator&(const KeyBits& other) const {
    return {words_[0] & other.words_[0], words_[1] & other.words_[1]};
  }
  KeyBits operator|(const KeyBits& other) const {
    return {words_[0] | other.words_[0], words_[1] | other.words_[1]};
  }
  // The set moved to later keys; keys beyond the end of the tile are lost.
  KeyBits operator<<(std::int64_t keys) const {
    if (keys >= kernels::kTileKeys) return {};
    if (keys >= 64) return {0, words_[0] << (keys - 64)};
    return {words_[0] << keys, words_[1] << keys | (keys == 0 ? 0 : words_[0] >> (64 - keys))};
  }
  KeyBits& operator&=(const KeyBits& other) { return *this = *this & other; }
  KeyBits& operator|=(const KeyBits& other) { return *this = *this | other; }
  // The keys of the tile that are not in the set.
  KeyBits operator~() const { return {~words_[0], ~words_[1]}; }
  bool operator==(const KeyBits& other) const {
    return ((words_[0] ^ other.words_[0]) | (words_[1] ^ other.words_[1])) == 0;
  }

  KeyBits() = default;
  KeyBits(std::uint64_t low, std::uint64_t high) : words_{low, high} {}

 private:
  static std::size_t word(std::int64_t j) { return static_cast<std::size_t>(j / 64); }
  static std::uint64_t bit(std::int64_t j) { return std::uint64_t{1} << (j % 64); }
  // The lowest n bits.
  static std::uint64_t up_to(std::int64_t n) {
    if (n >= 64) return ~std::uint64_t{0};
    return n <= 0 ? 0 : (std::uint64_t{1} << n) - 1;
  }

  static_assert(kernels::kTileKeys == 128);
  std::array<std::uint64_t, 2> words_{};
};

// The keys of one tile that each of several rows sees.
using RowBits = std::array<KeyBits, kernels::kMaxPanelWidth>;

}}}  // namespace heed::v0::detail
