// The keys of a tile that an irregular mask shows to the rows of a panel.
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

// Every step-th key of a tile: first, first + step, …
struct KeySteps {
  std::int32_t first = 0;
  std::int32_t step = 1;
  std::int32_t count = kernels::kTileKeys;

  friend bool operator==(const KeySteps&, const KeySteps&) = default;
};

// The largest step, and the fewest keys in it, that contain all of `keys`, which must not be empty.
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

// Keys in steps that contain `keys`, such that two of `keys` are multiplied as a pair exactly if
// they are a pair in the tile; any other key is paired with one that is not among `keys`.
inline KeySteps in_pairs_of_tile(const KeySteps& keys) {
  const std::int32_t last = keys.first + (keys.count - 1) * keys.step;
  if (keys.step % 2 == 0) return {keys.first, keys.step / 2, 2 * keys.count - 1};
  const std::int32_t first = keys.first / 2 * 2;
  return {first, 1, last - first + 1};
}

// The treatment of keys that no row sees.
enum class Unseen { kLeftOut, kKept };

// The keys of a tile that the rows of a panel see. A tile that is seen like the one before it, as
// most are by a mask in steps, is not analysed again.
template <class Real>
class SeenKeys {
 public:
  // Keys of the tile, counted from its first one.
  struct Range {
    std::int32_t begin = 0;
    std::int32_t end = 0;
  };

  // Analyses a tile that the rows visit and in which the mask may hide keys.
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

  // The number of these tiles that can be computed as one: find() was called for the first, and
  // each shows every row the same keys, in steps that continue from tile to tile. Together they
  // have at most the keys of one tile and are of one chunk.
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

  // True if no row sees a key.
  bool is_empty() const { return is_empty_; }
  const KeySteps& steps() const { return steps_; }
  // True if some row does not see some of the remaining keys.
  bool hides() const { return hides_; }
  // Bit r of number i is set if row r sees the i-th remaining key. Only where hides().
  const std::uint64_t* rows_of_keys() const { return rows_of_keys_.data(); }
  // The remaining keys that some row of a vector may see, and those that every vector has a row
  // for. Only where keys are left out.
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

  // Computes the rows that see each remaining key from the keys that each row sees.
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

  // Exchanges bit j of word i and bit i of word j of 64 words, first in quarters of the square,
  // then in quarters of these.
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

  // The arguments of the last analysis.
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

// The number of these tiles that a panel, which visits the first, computes as one. Not with pairs,
// which are put together for one tile.
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

// A tile from which keys that no row sees are left out, where the remaining keys are in steps. The
// sums of kernels over these have the same bits as over the whole tile, in which the others have
// weight 0.
template <class Real>
class SeenTile {
 public:
  // The rows must visit the tile. `keys` has the analysis of the last tile, if there was one.
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

  // Makes this tile the remaining keys of `count` tiles: see SeenKeys::tiles_alike().
  void take_tiles(std::int32_t count) {
    tile_.num_keys *= count;
    panel_.any_end = panel_.all_end = tile_.first_key + tile_.num_keys;
  }

  // True if its pairs of neighbouring keys are not those of the whole tile.
  bool has_other_pairs() const { return steps_.step != 1 || steps_.first % 2 != 0; }
  // The remaining keys, and the panel with the ranges of rows counted in these.
  kernels::BasicTile<Real>& tile() { return tile_; }
  const kernels::BasicTile<Real>& tile() const { return tile_; }
  const kernels::BasicPanel<Real>& panel() const { return panel_; }
  const KeySteps& steps() const { return steps_; }
  // True if no row sees a key.
  bool is_empty() const { return keys_ != nullptr && keys_->is_empty(); }

  // Sets the scores of hidden keys to −infinity.
  void hide(const kernels::BasicKernelTable<Real>& table,
            kernels::BasicScoreTile<Real> scores) const {
    if (keys_ == nullptr || !keys_->hides()) return;
    scores.begin = std::max(panel_.any_begin - tile_.first_key, 0);
    scores.end = std::min(panel_.any_end - tile_.first_key, tile_.num_keys);
    table.hide(scores, keys_->rows_of_keys());
  }

 private:
  // Gives every row the range of its vector; hide() hides the rest.
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
