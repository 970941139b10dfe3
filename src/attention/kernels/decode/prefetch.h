// Prefetching for the decode kernels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/decode/stored_tile.h"
#include "hwy/base.h"
#include "simd/processor.h"

namespace heed { inline namespace v0 { namespace kernels {

// The keys or the values of a tile, with the number of bytes of a position.
struct TileSide {
  const StoredNumbers& numbers;
  std::int32_t num_keys = 0;
  std::int64_t row_bytes = 0;

  // `dim` is the number of numbers of a position; real_bytes is the size of those of
  // KvStorage::kFloat32, which may stand for doubles.
  HWY_INLINE TileSide(const StoredNumbers& n, std::int32_t keys, std::int64_t dim,
                      std::int64_t real_bytes)
      : numbers(n),
        num_keys(keys),
        row_bytes(kernels::row_bytes(n.storage, n.is_columns, dim, real_bytes)) {}

  std::int32_t num_groups() const { return (num_keys - 1) / kGroupKeys + 1; }
  std::int64_t group_bytes() const { return row_bytes * kGroupKeys; }
  // True if the positions of a group are contiguous.
  bool is_whole() const { return numbers.is_columns || numbers.row_stride == row_bytes; }
  bool has_scales() const { return numbers.is_quantised(); }
  const std::byte* begin() const { return numbers.groups[0]; }
  const std::byte* end() const { return begin() + num_groups() * group_bytes(); }
  // True if all groups are contiguous.
  bool is_one_stretch() const {
    if (!is_whole()) return false;
    for (std::int32_t g = 1; g < num_groups(); ++g) {
      if (numbers.groups[static_cast<std::size_t>(g)] != begin() + g * group_bytes()) return false;
    }
    return true;
  }
  // Fetches the scales of a group into the first-level or the second-level cache.
  template <int kCache>
  HWY_INLINE void fetch_scales(std::int32_t group) const {
    const float* scales = numbers.scales[static_cast<std::size_t>(group)];
    const StorageTraits& traits = traits_of(numbers.storage);
    const std::int64_t blocks =
        traits.scales_blocks ? row_bytes * 8 / (kScaleDims * traits.bits) : 1;
    for (std::int64_t b = 0; b < blocks; ++b) {
      __builtin_prefetch(scales + b * kGroupKeys, 0, 4 - kCache);
    }
  }
};

constexpr std::int64_t kLineBytes = 64;

// Fetches the line `bytes` bytes after an address into the second-level cache, whether or not there
// is any memory.
HWY_INLINE void fetch_line(const std::byte* read, std::int64_t bytes) {
  const auto line = reinterpret_cast<std::uintptr_t>(read) + static_cast<std::uintptr_t>(bytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the address may be outside any object.
  __builtin_prefetch(reinterpret_cast<const void*>(line), 0, 2);
}

// The distance in bytes at which lines are fetched ahead of what is read in order: for rows of keys
// and their values, and for Stretches::kInOrderFetched.
constexpr std::int64_t kRowsAhead = 8192;
constexpr std::int64_t kStretchAhead = 12288;

// Fetches the lines kRowsAhead bytes after some bytes that are read.
HWY_INLINE void fetch_ahead(const std::byte* read, std::int64_t bytes) {
  for (std::int64_t at = 0; at < bytes; at += kLineBytes) fetch_line(read, kRowsAhead + at);
}

// True if a side that is read in order is prefetched as well.
HWY_INLINE bool fetches_stretch(const TileSide& side, Stretches stretches) {
  return stretches == Stretches::kInOrderFetched && side.numbers.storage != KvStorage::kFloat32;
}

// Fetches one side of a tile into the second-level cache while the other side is computed, whatever
// the order in which the kernel reads its numbers. Without this, most processors predict short
// streams and streams that share a page badly, and wait at the beginning of each page. Some
// processors read memory as fast as a plain loop, or faster, if a line of every group is fetched in
// turn; others predict better if all lines of a contiguous range are fetched in order.
class Prefetch {
 public:
  // Fetches nothing.
  Prefetch() = default;
  // Fetches all of `side` in `steps` steps: in order, if in_order is true and the side is
  // contiguous and without scales; otherwise a line of every group in turn. It is inlined, as its
  // members would be kept in memory otherwise.
  HWY_INLINE Prefetch(const TileSide& side, bool in_order, std::int64_t steps)
      : groups_(side.numbers.groups.data()), num_groups_(side.num_groups()), steps_(steps) {
    if (in_order && !side.has_scales() && side.is_one_stretch()) {
      take_stretch(side.end() - side.begin());
    } else {
      // If there is only one group, it may have fewer rows.
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
  // The prefetch while `side` is read, after which `following` is read. kInOrder is true if sides
  // are contiguous and read from the first byte to the last.
  template <bool kInOrder>
  static HWY_INLINE Prefetch beside(const TileSide& side, const TileSide& following,
                                    Stretches stretches, std::int64_t steps) {
    if (!kInOrder) return Prefetch(following, stretches != Stretches::kGroupsInTurn, steps);
    if (following.begin() != side.end()) return beginning(following, steps);
    return fetches_stretch(side, stretches) ? farther_on(side, steps) : Prefetch();
  }

  // Fetches the lines of one step.
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

  // Fetches a contiguous side that is being read in order, kStretchAhead further on.
  static HWY_INLINE Prefetch farther_on(const TileSide& side, std::int64_t steps) {
    Prefetch result;
    result.groups_ = side.numbers.groups.data();
    result.steps_ = steps;
    result.take_stretch(side.end() - side.begin());
    result.offset_ = kStretchAhead;
    return result;
  }
  // Fetches the beginning of a contiguous side, which a processor needs to see that it is read in
  // order.
  static HWY_INLINE Prefetch beginning(const TileSide& side, std::int64_t steps) {
    Prefetch result;
    result.groups_ = side.numbers.groups.data();
    result.steps_ = steps;
    result.take_stretch(std::min<std::int64_t>(kBeginning * kLineBytes, side.end() - side.begin()));
    return result;
  }

  static std::int64_t lines_in(std::int64_t bytes) { return (bytes + kLineBytes - 1) / kLineBytes; }

  // Sets the range to `bytes` bytes from the beginning of the first group.
  HWY_INLINE void take_stretch(std::int64_t bytes) {
    num_groups_ = 1;
    lines_ = row_lines_ = lines_in(bytes);
  }

  const std::byte* const* groups_ = nullptr;
  std::int32_t num_groups_ = 0;
  std::int32_t group_ = 0;
  std::int64_t steps_ = 1;
  std::int64_t lines_ = 0;      // of all groups
  std::int64_t row_lines_ = 0;  // of a row, or of a group if that is contiguous
  std::int64_t row_stride_ = 0;
  // The next line, in bytes from the beginning of a group.
  std::int64_t row_ = 0;
  std::int64_t line_ = 0;
  std::int64_t offset_ = 0;
  std::int64_t due_ = 0;  // the number of lines that are due, times steps_
};

}}}  // namespace heed::v0::kernels
