// A tile as an irregular mask shows it to the rows of a panel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>

#include "attention/engine/panel_rows.h"
#include "attention/kernels/kernels.h"
#include "attention/masks/key_bits.h"

namespace heed::inline v0::engine {

// Keys of a tile that stand `step` apart: first, first + step, …
struct KeySteps {
  std::int32_t first = 0;
  std::int32_t step = 1;
  std::int32_t count = kernels::kTileKeys;

  friend bool operator==(const KeySteps&, const KeySteps&) = default;
};

// The fewest keys in steps that are all these, which are some.
inline KeySteps steps_of(const detail::KeyBits& keys) {
  const std::int32_t first = keys.first();
  const std::int32_t last = keys.last();
  std::int32_t step = last - first;
  for (detail::KeyBits rest = keys; step > 1 && !rest.is_empty(); rest.clear(rest.first())) {
    const std::int32_t distance = rest.first() - first;
    if (distance % step != 0) step = std::gcd(step, distance);
  }
  return {first, std::max(step, 1), step == 0 ? 1 : (last - first) / step + 1};
}

// What becomes of keys that no row sees.
enum class Unseen { kLeftOut, kKept };

// Keys are left out where those that stay stand in steps. What kernels sum over the rest has the
// bits of the whole tile, where what is missing weighs 0.
template <class Real>
class SeenTile {
 public:
  // Of a tile that the rows visit.
  SeenTile(const kernels::BasicTile<Real>& whole, const PanelRows<Real>& rows,
           Unseen unseen = Unseen::kLeftOut)
      : tile_(whole), panel_(rows.panel()) {
    steps_.count = whole.num_keys;
    if (!rows.has_mask(whole)) return;
    detail::RowBits seen;
    rows.see(whole, seen);
    detail::KeyBits any;
    for (std::int32_t r = 0; r < rows.num_rows(); ++r) any |= seen[static_cast<std::size_t>(r)];
    is_empty_ = any.is_empty();
    if (is_empty_) return;
    const bool leaves_out = unseen == Unseen::kLeftOut && rows.may_leave_out_keys();
    if (leaves_out) leave_out(any);
    const bool see_alike = std::all_of(seen.begin(), seen.begin() + rows.num_rows(),
                                       [&](const auto& keys) { return keys == any; });
    hides_ = !see_alike || any.count() != steps_.count;
    if (hides_) find_rows_of_keys(seen, rows.num_rows());
    if (leaves_out) find_ranges(rows);
  }
  SeenTile(const SeenTile&) = delete;
  SeenTile& operator=(const SeenTile&) = delete;

  // The keys that are left, and the rows' ranges counted in these.
  const kernels::BasicTile<Real>& tile() const { return tile_; }
  const kernels::BasicPanel<Real>& panel() const { return panel_; }
  const KeySteps& steps() const { return steps_; }
  // Whether no row sees a key.
  bool is_empty() const { return is_empty_; }

  // Makes scores of hidden keys −infinity.
  void hide(const kernels::BasicKernelTable<Real>& table,
            kernels::BasicScoreTile<Real> scores) const {
    if (!hides_) return;
    scores.begin = std::max(panel_.any_begin - tile_.first_key, 0);
    scores.end = std::min(panel_.any_end - tile_.first_key, tile_.num_keys);
    table.hide(scores, rows_of_keys_.data());
  }

 private:
  void leave_out(const detail::KeyBits& any) {
    steps_ = steps_of(any);
    tile_.key += steps_.first * tile_.key_stride;
    tile_.key_stride *= steps_.step;
    tile_.value += steps_.first * tile_.value_stride;
    tile_.value_stride *= steps_.step;
    tile_.num_keys = steps_.count;
  }

  // Turns what each row sees into the rows that see each of the keys that are left.
  void find_rows_of_keys(const detail::RowBits& seen, std::int32_t num_rows) {
    for (int half = 0; half < 2; ++half) {
      std::uint64_t* const bits = rows_of_keys_.data() + std::ptrdiff_t{64} * half;
      for (std::int32_t r = 0; r < num_rows; ++r) {
        bits[r] = seen[static_cast<std::size_t>(r)].half(half);
      }
      std::fill(bits + num_rows, bits + 64, 0);
      transpose(bits);
    }
    if (steps_.first == 0 && steps_.step == 1) return;
    for (std::int32_t i = 0; i < steps_.count; ++i) {
      const std::int32_t key = steps_.first + i * steps_.step;
      rows_of_keys_[static_cast<std::size_t>(i)] = rows_of_keys_[static_cast<std::size_t>(key)];
    }
  }

  // Exchanges bit j of word i and bit i of word j, of 64 words: quarters of a square at first, then
  // quarters of these.
  static void transpose(std::uint64_t* words) {
    std::uint64_t low_half = 0xFFFFFFFF;
    for (int size = 32; size > 0; size /= 2, low_half ^= low_half << size) {
      for (int first = 0; first < 64; first += 2 * size) {
        for (int i = first; i < first + size; ++i) {
          const std::uint64_t swapped = (words[i] >> size ^ words[i + size]) & low_half;
          words[i] ^= swapped << size;
          words[i + size] ^= swapped;
        }
      }
    }
  }

  // Every row may see what any row of its vector sees; hide() does the rest.
  void find_ranges(const PanelRows<Real>& rows) {
    panel_.any_begin = tile_.first_key;
    panel_.any_end = tile_.first_key + steps_.count;
    if (!hides_) {
      panel_.all_begin = panel_.any_begin;
      panel_.all_end = panel_.any_end;
      return;
    }
    panel_.all_begin = 0;
    panel_.all_end = std::numeric_limits<std::int32_t>::max();
    const std::uint64_t of_vector = (std::uint64_t{1} << rows.lanes()) - 1;
    for (std::int32_t first = 0; first < rows.width(); first += rows.lanes()) {
      std::int32_t begin = 0;
      std::int32_t end = steps_.count;
      const auto sees = [&](std::int32_t i) {
        return (rows_of_keys_[static_cast<std::size_t>(i)] >> first & of_vector) != 0;
      };
      while (begin < end && !sees(begin)) ++begin;
      while (end > begin && !sees(end - 1)) --end;
      const auto vector = static_cast<std::size_t>(first / rows.lanes());
      panel_.vector_begin[vector] = tile_.first_key + begin;
      panel_.vector_end[vector] = tile_.first_key + end;
      panel_.all_begin = std::max(panel_.all_begin, tile_.first_key + begin);
      panel_.all_end = std::min(panel_.all_end, tile_.first_key + end);
      std::fill_n(begin_.begin() + first, rows.lanes(), tile_.first_key + begin);
      std::fill_n(end_.begin() + first, rows.lanes(), tile_.first_key + end);
    }
    panel_.begin = begin_.data();
    panel_.end = end_.data();
  }

  kernels::BasicTile<Real> tile_;
  kernels::BasicPanel<Real> panel_;
  KeySteps steps_;
  bool is_empty_ = false;
  bool hides_ = false;
  std::array<std::uint64_t, kernels::kTileKeys> rows_of_keys_;  // bit r: row r sees the key
  std::array<std::int32_t, kernels::kMaxPanelWidth> begin_;
  std::array<std::int32_t, kernels::kMaxPanelWidth> end_;
};

}  // namespace heed::inline v0::engine
