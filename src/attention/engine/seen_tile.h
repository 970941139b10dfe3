// A tile as an irregular mask shows it to the rows of a panel.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>

#include "attention/engine/panel_rows.h"
#include "attention/kernels/kernels.h"
#include "attention/masks/key_bits.h"

namespace heed { inline namespace v0 { namespace engine {

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

// Keys in steps, all these among them, so that two of these are a pair where they are one in the
// tile, and nowhere else: otherwise the other key of a pair is none of these.
inline KeySteps in_pairs_of_tile(const KeySteps& keys) {
  const std::int32_t last = keys.first + (keys.count - 1) * keys.step;
  if (keys.step % 2 == 0) return {keys.first, keys.step / 2, 2 * keys.count - 1};
  const std::int32_t first = keys.first / 2 * 2;
  return {first, 1, last - first + 1};
}

// What becomes of keys that no row sees.
enum class Unseen { kLeftOut, kKept };

// Which keys of a tile the rows of a panel see, and what follows from that. Nothing is worked out
// again for a tile that is seen like the one before it, as most are by a mask in steps.
template <class Real>
class SeenKeys {
 public:
  // Keys of the tile, counted from its first one.
  struct Range {
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };

  // Of a tile that the rows visit, and of which the mask may hide keys.
  void find(const kernels::BasicTile<Real>& tile, const PanelRows<Real>& rows, bool leaves_out) {
    detail::RowBits seen;
    rows.see(tile, seen);
    if (is_known(tile, rows, seen, leaves_out)) return;
    seen_ = seen;
    num_rows_ = rows.num_rows();
    num_keys_ = tile.num_keys;
    leaves_out_ = leaves_out;
    detail::KeyBits any;
    for (std::int32_t r = 0; r < num_rows_; ++r) any |= seen_[index(r)];
    is_empty_ = any.is_empty();
    if (is_empty_) return;
    steps_ = leaves_out ? steps_of(any) : KeySteps{.count = num_keys_};
    if (leaves_out && rows.keeps_pairs()) steps_ = in_pairs_of_tile(steps_);
    const bool see_alike = std::all_of(seen_.begin(), seen_.begin() + num_rows_,
                                       [&](const auto& keys) { return keys == any; });
    hides_ = !see_alike || any.count() != steps_.count;
    if (hides_) find_rows_of_keys();
    if (leaves_out) find_ranges(rows);
  }

  // How many of these tiles, of which find() knows the first, show every row the same keys in steps
  // that go on from tile to tile, so that they are as good as one: at most as many as have a tile's
  // keys together, of one chunk.
  std::int32_t tiles_alike(std::span<const kernels::BasicTile<Real>> tiles,
                           const PanelRows<Real>& rows) const {
    if (is_empty_ || hides_ || steps_.step * steps_.count != kernels::kTileKeys) return 1;
    const std::int32_t first = tiles.front().first_key;
    std::int32_t count = 1;
    for (const auto& tile : tiles.subspan(1)) {
      if (count == steps_.step || tile.first_key != first + count * kernels::kTileKeys ||
          tile.first_key / kernels::kChunkKeys != first / kernels::kChunkKeys || !rows.sees(tile) ||
          !rows.has_mask(tile)) {
        break;
      }
      detail::RowBits seen;
      rows.see(tile, seen);
      if (!is_known(tile, rows, seen, leaves_out_)) break;
      ++count;
    }
    return count;
  }

  // Whether no row sees a key.
  bool is_empty() const { return is_empty_; }
  const KeySteps& steps() const { return steps_; }
  // Whether some row does not see some key of those that are left.
  bool hides() const { return hides_; }
  // Bit r of the i-th number: row r sees the i-th key that is left. Only where hides().
  const std::uint64_t* rows_of_keys() const { return rows_of_keys_.data(); }
  // What some row of each vector may see of the keys that are left, and what some row of every
  // vector may. Only where keys are left out.
  const Range& range_of_vector(std::size_t vector) const { return range_of_vector_[vector]; }
  const Range& range_of_all() const { return range_of_all_; }

 private:
  static std::size_t index(std::int32_t r) { return static_cast<std::size_t>(r); }

  bool is_known(const kernels::BasicTile<Real>& tile, const PanelRows<Real>& rows,
                const detail::RowBits& seen, bool leaves_out) const {
    return num_rows_ == rows.num_rows() && num_keys_ == tile.num_keys &&
           leaves_out_ == leaves_out &&
           std::equal(seen.begin(), seen.begin() + num_rows_, seen_.begin());
  }

  // Turns what each row sees into the rows that see each of the keys that are left.
  void find_rows_of_keys() {
    for (int half = 0; half < 2; ++half) {
      std::uint64_t* const bits = rows_of_keys_.data() + std::ptrdiff_t{64} * half;
      for (std::int32_t r = 0; r < num_rows_; ++r) bits[r] = seen_[index(r)].half(half);
      std::fill(bits + num_rows_, bits + 64, 0);
      transpose(bits);
    }
    if (steps_.first == 0 && steps_.step == 1) return;
    for (std::int32_t i = 0; i < steps_.count; ++i) {
      rows_of_keys_[index(i)] = rows_of_keys_[index(steps_.first + i * steps_.step)];
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

  void find_ranges(const PanelRows<Real>& rows) {
    range_of_all_ = {0, steps_.count};
    const std::uint64_t of_vector = (std::uint64_t{1} << rows.lanes()) - 1;
    for (std::int32_t first = 0; first < rows.width(); first += rows.lanes()) {
      Range& range = range_of_vector_[index(first / rows.lanes())];
      range = {0, steps_.count};
      const auto sees = [&](std::int32_t i) {
        return (rows_of_keys_[index(i)] >> first & of_vector) != 0;
      };
      if (!hides_) continue;
      while (range.begin < range.end && !sees(range.begin)) ++range.begin;
      while (range.end > range.begin && !sees(range.end - 1)) --range.end;
      range_of_all_.begin = std::max(range_of_all_.begin, range.begin);
      range_of_all_.end = std::min(range_of_all_.end, range.end);
    }
  }

  // What these answers are to.
  detail::RowBits seen_;
  std::int32_t num_rows_ = -1;
  std::int32_t num_keys_ = 0;
  bool leaves_out_ = false;

  bool is_empty_ = false;
  bool hides_ = false;
  KeySteps steps_;
  std::array<std::uint64_t, kernels::kTileKeys> rows_of_keys_;
  std::array<Range, kernels::kPanelVectors> range_of_vector_;
  Range range_of_all_;
};

// How many of these tiles a panel, which visits the first, computes as one. Not by pairs, which are
// put together for one tile.
template <class Real>
std::int32_t tiles_alike(std::span<const kernels::BasicTile<Real>> tiles,
                         const PanelRows<Real>& rows, SeenKeys<Real>& keys) {
  if (tiles.size() == 1 || tiles.front().pairs != nullptr || !rows.keeps_scores() ||
      !rows.may_leave_out_keys() || !rows.has_mask(tiles.front())) {
    return 1;
  }
  keys.find(tiles.front(), rows, true);
  return keys.tiles_alike(tiles, rows);
}

// Keys are left out where those that stay stand in steps. What kernels sum over the rest has the
// bits of the whole tile, where what is missing weighs 0.
template <class Real>
class SeenTile {
 public:
  // Of a tile that the rows visit. `keys` is what was known of the last one, if there was one.
  SeenTile(const kernels::BasicTile<Real>& whole, const PanelRows<Real>& rows, SeenKeys<Real>& keys,
           Unseen unseen = Unseen::kLeftOut)
      : tile_(whole), panel_(rows.panel()) {
    if (!rows.has_mask(whole)) {
      steps_.count = whole.num_keys;
      return;
    }
    const bool leaves_out = unseen == Unseen::kLeftOut && rows.may_leave_out_keys();
    keys.find(whole, rows, leaves_out);
    keys_ = &keys;
    steps_ = keys.steps();
    if (!leaves_out || keys.is_empty()) return;
    tile_.key += steps_.first * tile_.key_stride;
    tile_.key_stride *= steps_.step;
    tile_.value += steps_.first * tile_.value_stride;
    tile_.value_stride *= steps_.step;
    if (!has_other_pairs()) tile_.pairs += steps_.first / 2 * tile_.pair_stride;
    tile_.num_keys = steps_.count;
    put_ranges(rows);
  }
  SeenTile(const SeenTile&) = delete;
  SeenTile& operator=(const SeenTile&) = delete;

  // Becomes the keys that are left of so many tiles: see SeenKeys::tiles_alike().
  void take_tiles(std::int32_t count) {
    tile_.num_keys *= count;
    panel_.any_end = panel_.all_end = tile_.first_key + tile_.num_keys;
  }

  // Whether pairs of neighbouring keys are others than those of the whole tile.
  bool has_other_pairs() const { return steps_.step != 1 || steps_.first % 2 != 0; }
  // The keys that are left, and the rows' ranges counted in these.
  kernels::BasicTile<Real>& tile() { return tile_; }
  const kernels::BasicTile<Real>& tile() const { return tile_; }
  const kernels::BasicPanel<Real>& panel() const { return panel_; }
  const KeySteps& steps() const { return steps_; }
  // Whether no row sees a key.
  bool is_empty() const { return keys_ != nullptr && keys_->is_empty(); }

  // Makes scores of hidden keys −infinity.
  void hide(const kernels::BasicKernelTable<Real>& table,
            kernels::BasicScoreTile<Real> scores) const {
    if (keys_ == nullptr || !keys_->hides()) return;
    scores.begin = std::max(panel_.any_begin - tile_.first_key, 0);
    scores.end = std::min(panel_.any_end - tile_.first_key, tile_.num_keys);
    table.hide(scores, keys_->rows_of_keys());
  }

 private:
  // Every row may see what any row of its vector sees; hide() does the rest.
  void put_ranges(const PanelRows<Real>& rows) {
    const std::int32_t first_key = tile_.first_key;
    panel_.any_begin = first_key;
    panel_.any_end = first_key + steps_.count;
    panel_.all_begin = first_key + keys_->range_of_all().begin;
    panel_.all_end = first_key + keys_->range_of_all().end;
    if (!keys_->hides()) return;
    for (std::int32_t first = 0; first < rows.width(); first += rows.lanes()) {
      const auto vector = static_cast<std::size_t>(first / rows.lanes());
      const auto& range = keys_->range_of_vector(vector);
      panel_.vector_begin[vector] = first_key + range.begin;
      panel_.vector_end[vector] = first_key + range.end;
      std::fill_n(begin_.begin() + first, rows.lanes(), first_key + range.begin);
      std::fill_n(end_.begin() + first, rows.lanes(), first_key + range.end);
    }
    panel_.begin = begin_.data();
    panel_.end = end_.data();
  }

  kernels::BasicTile<Real> tile_;
  kernels::BasicPanel<Real> panel_;
  KeySteps steps_;
  const SeenKeys<Real>* keys_ = nullptr;  // null where the mask hides nothing
  std::array<std::int32_t, kernels::kMaxPanelWidth> begin_;
  std::array<std::int32_t, kernels::kMaxPanelWidth> end_;
};

}}}  // namespace heed::v0::engine
