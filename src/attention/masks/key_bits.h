// Keys of a tile as bits.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "attention/kernels/kernels.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace detail {

// Some keys of a tile: bit j is the j-th. None to begin with.
class KeyBits {
 public:
  static KeyBits all() { return between(0, kernels::kTileKeys); }
  // The keys begin ≤ j < end, which may lie outside the tile.
  static KeyBits between(std::int64_t begin, std::int64_t end) {
    const std::uint64_t words[] = {up_to(end) & ~up_to(begin),
                                   up_to(end - 64) & ~up_to(begin - 64)};
    return {words[0], words[1]};
  }
  // The first key of the tile and those in steps after it.
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
  // Of keys that are not empty.
  std::int32_t first() const {
    return words_[0] != 0 ? std::countr_zero(words_[0]) : 64 + std::countr_zero(words_[1]);
  }
  std::int32_t last() const {
    return words_[1] != 0 ? 127 - std::countl_zero(words_[1]) : 63 - std::countl_zero(words_[0]);
  }
  // 0: the keys below 64; 1: the others.
  std::uint64_t half(int i) const { return words_[static_cast<std::size_t>(i)]; }

  KeyBits operator&(const KeyBits& other) const {
    return {words_[0] & other.words_[0], words_[1] & other.words_[1]};
  }
  KeyBits operator|(const KeyBits& other) const {
    return {words_[0] | other.words_[0], words_[1] | other.words_[1]};
  }
  // So many keys later; what leaves the tile is lost.
  KeyBits operator<<(std::int64_t keys) const {
    if (keys >= kernels::kTileKeys) return {};
    if (keys >= 64) return {0, words_[0] << (keys - 64)};
    return {words_[0] << keys, words_[1] << keys | (keys == 0 ? 0 : words_[0] >> (64 - keys))};
  }
  KeyBits& operator&=(const KeyBits& other) { return *this = *this & other; }
  KeyBits& operator|=(const KeyBits& other) { return *this = *this | other; }
  // Those of the tile that are not among these.
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

// What several rows see of one tile.
using RowBits = std::array<KeyBits, kernels::kMaxPanelWidth>;

}}}  // namespace heed::v0::detail
