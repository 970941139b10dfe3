// Fetching ahead of the kernel of few rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "hwy/base.h"
#include "simd/processor.h"

namespace heed { inline namespace v0 { namespace kernels {

// The keys or the values of a tile, and how many bytes a position has.
struct TileSide {
  const StoredNumbers& numbers;
  std::int32_t num_keys = 0;
  std::int64_t row_bytes = 0;

  // `dim` numbers for each position; float32 stands for the type that is computed with.
  HWY_INLINE TileSide(const StoredNumbers& n, std::int32_t keys, std::int64_t dim,
                      std::int64_t real_bytes)
      : numbers(n), num_keys(keys) {
    switch (numbers.storage) {
      case KvStorage::kFloat32:
        row_bytes = dim * real_bytes;
        break;
      case KvStorage::kFloat16:
      case KvStorage::kBFloat16:
        row_bytes = dim * 2;
        break;
      case KvStorage::kInt8:
      case KvStorage::kInt4:
        row_bytes = quantised_row_bytes(numbers.storage, numbers.is_columns, dim);
        break;
    }
  }

  std::int32_t num_groups() const { return (num_keys - 1) / kGroupKeys + 1; }
  std::int64_t group_bytes() const { return row_bytes * kGroupKeys; }
  // Whether the positions of a group lie behind each other.
  bool is_whole() const { return numbers.is_columns || numbers.row_stride == row_bytes; }
  bool has_scales() const { return numbers.is_quantised(); }
  const std::byte* begin() const { return numbers.groups[0]; }
  const std::byte* end() const { return begin() + num_groups() * group_bytes(); }
  // Whether all groups lie behind each other.
  bool is_one_stretch() const {
    if (!is_whole()) return false;
    for (std::int32_t g = 1; g < num_groups(); ++g) {
      if (numbers.groups[static_cast<std::size_t>(g)] != begin() + g * group_bytes()) return false;
    }
    return true;
  }
  // Fetches the scales of a group into the first or the second cache.
  template <int kCache>
  HWY_INLINE void fetch_scales(std::int32_t group) const {
    const float* scales = numbers.scales[static_cast<std::size_t>(group)];
    const std::int64_t blocks =
        numbers.storage == KvStorage::kInt4 ? row_bytes / (kScaleDims / 2) : 1;
    for (std::int64_t b = 0; b < blocks; ++b) {
      __builtin_prefetch(scales + b * kGroupKeys, 0, 4 - kCache);
    }
  }
};

constexpr std::int64_t kLineBytes = 64;

// Fetches into the second-level cache the line so many bytes farther on than one that is read,
// whatever is there.
HWY_INLINE void fetch_line(const std::byte* read, std::int64_t bytes) {
  const auto line = reinterpret_cast<std::uintptr_t>(read) + static_cast<std::uintptr_t>(bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): there may be no object that a pointer could reach.
  __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
}

// How many bytes farther on than what is read in its order lines are fetched: of rows of keys and
// their values, and by Stretches::kInOrderFetched.
constexpr std::int64_t kRowsAhead = 8192;
constexpr std::int64_t kStretchAhead = 12288;

// Fetches what lies kRowsAhead farther on than some bytes.
HWY_INLINE void fetch_ahead(const std::byte* read, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += kLineBytes) fetch_line(read, kRowsAhead + at);
}

// Whether a side that is read in its order is fetched as well.
HWY_INLINE bool fetches_stretch(const TileSide& side, Stretches stretches) {
  return stretches == Stretches::kInOrderFetched && side.numbers.storage != KvStorage::kFloat32;
}

// Fetches one side of a tile into the second-level cache while the other is computed with, whatever
// the order in which the kernel takes the numbers: left alone, most processors foresee too little
// of streams that are short, or share a page, and wait at the beginning of each page. Some read
// memory as fast as a plain loop, or faster, if a line of every group is fetched in turn, some
// foresee more if all lines of a stretch are fetched in their order.
class Prefetch {
 public:
  // Fetches nothing.
  Prefetch() = default;
  // All of `side`, in so many steps; `in_order` if that is one stretch without scales, a line of
  // every group in turn otherwise. Inlined, or the members would be kept in memory.
  HWY_INLINE Prefetch(const TileSide& side, bool in_order, std::int64_t steps)
      : groups_(side.numbers.groups.data()), num_groups_(side.num_groups()), steps_(steps) {
    if (in_order && !side.has_scales() && side.is_one_stretch()) {
      take_stretch(side.end() - side.begin());
    } else {
      // The only group may have fewer rows.
      const std::int32_t there_are =
          side.numbers.is_columns ? kGroupKeys : std::min(side.num_keys, kGroupKeys);
      const std::int64_t rows = side.is_whole() ? 1 : there_are;
      row_lines_ = lines_in(side.row_bytes * there_are / rows);
      row_stride_ = side.numbers.row_stride;
      lines_ = num_groups_ * rows * row_lines_;
    }
    if (!side.has_scales()) return;
    for (std::int32_t g = 0; g < side.num_groups(); ++g) side.fetch_scales<2>(g);
  }
  // What is fetched while `side` is read, after which `following` comes; kInOrder if sides are
  // stretches that are read from the first byte to the last.
  template <bool kInOrder>
  static HWY_INLINE Prefetch beside(const TileSide& side, const TileSide& following,
                                    Stretches stretches, std::int64_t steps) {
    if (!kInOrder) return Prefetch(following, stretches != Stretches::kGroupsInTurn, steps);
    if (following.begin() != side.end()) return beginning(following, steps);
    return fetches_stretch(side, stretches) ? farther_on(side, steps) : Prefetch();
  }

  // What belongs to one step.
  HWY_INLINE void step() {
    for (due_ += lines_; due_ > 0; due_ -= steps_) {
      fetch_line(groups_[group_], offset_);
      if (++group_ < num_groups_) continue;
      group_ = 0;
      offset_ += kLineBytes;
      if (++line_ < row_lines_) continue;
      line_ = 0;
      row_ += row_stride_;
      offset_ = row_;
    }
  }

 private:
  static constexpr std::int64_t kBeginning = 128;  // lines

  // Of a stretch that is read in its order meanwhile, the same kStretchAhead farther on.
  static HWY_INLINE Prefetch farther_on(const TileSide& side, std::int64_t steps) {
    Prefetch result;
    result.groups_ = side.numbers.groups.data();
    result.steps_ = steps;
    result.take_stretch(side.end() - side.begin());
    result.offset_ = kStretchAhead;
    return result;
  }
  // Of one stretch the beginning: what a processor needs to see that it is read in order.
  static HWY_INLINE Prefetch beginning(const TileSide& side, std::int64_t steps) {
    Prefetch result;
    result.groups_ = side.numbers.groups.data();
    result.steps_ = steps;
    result.take_stretch(std::min<std::int64_t>(kBeginning * kLineBytes, side.end() - side.begin()));
    return result;
  }

  static std::int64_t lines_in(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

  // So many bytes from the beginning of the first group on.
  HWY_INLINE void take_stretch(std::int64_t bytes) {
    num_groups_ = 1;
    lines_ = row_lines_ = lines_in(bytes);
  }

  const std::byte* const* groups_ = nullptr;
  std::int32_t num_groups_ = 0;
  std::int32_t group_ = 0;
  std::int64_t steps_ = 1;
  std::int64_t lines_ = 0;      // of all groups
  std::int64_t row_lines_ = 0;  // of a row, or of the group where that lies in one piece
  std::int64_t row_stride_ = 0;
  // What comes next, in bytes from the beginning of a group.
  std::int64_t row_ = 0;
  std::int64_t line_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t due_ = 0;  // how many lines, times steps_
};

}}}  // namespace heed::v0::kernels
