// Fetching ahead of the kernel of few rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/stored_tile.h"

namespace heed::inline v0::kernels {

// Fetches one side of a tile into the second-level cache while something else is computed, a line
// of every group in turn. So memory is read as fast as by a plain loop or faster, whatever the
// order in which the kernel takes the numbers: left alone, the processor foresees too little of
// streams that are short, or share a page, and waits at the beginning of each page.
class Prefetch {
 public:
  // Fetches nothing.
  Prefetch() = default;
  // Of positions of `dim` numbers, each of `number_bytes` unless it is an int4, in so many steps.
  Prefetch(const StoredNumbers& numbers, std::int32_t num_keys, std::int32_t dim,
           std::int64_t number_bytes, std::int64_t steps)
      : numbers_(&numbers), groups_((num_keys - 1) / kGroupKeys + 1), steps_(steps) {
    const bool is_int4 = numbers.storage == KvStorage::kInt4;
    const std::int64_t blocks = (dim - 1) / kScaleDims + 1;
    const std::int64_t row_bytes = is_int4 ? blocks * (kScaleDims / 2) : dim * number_bytes;
    const bool is_whole = numbers.is_columns || numbers.row_stride == row_bytes;
    const std::int64_t rows = is_whole ? 1 : kGroupKeys;
    row_lines_ = (row_bytes * kGroupKeys / rows + kLine - 1) / kLine;
    row_stride_ = numbers.row_stride;
    lines_ = groups_ * rows * row_lines_;
    if (is_int4 || numbers.storage == KvStorage::kInt8) fetch_scales(is_int4 ? blocks : 1);
  }

  // What belongs to one step.
  void step() {
    for (due_ += lines_; due_ > 0; due_ -= steps_) {
      __builtin_prefetch(numbers_->groups[static_cast<std::size_t>(group_)] + offset_, 0, 2);
      if (++group_ < groups_) continue;
      group_ = 0;
      offset_ += kLine;
      if (++line_ < row_lines_) continue;
      line_ = 0;
      row_ += row_stride_;
      offset_ = row_;
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;

  void fetch_scales(std::int64_t blocks) const {
    for (std::int32_t g = 0; g < groups_; ++g) {
      const float* scales = numbers_->scales[static_cast<std::size_t>(g)];
      for (std::int64_t b = 0; b < blocks; ++b) __builtin_prefetch(scales + b * kGroupKeys, 0, 2);
    }
  }

  const StoredNumbers* numbers_ = nullptr;
  std::int32_t groups_ = 0;
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

}  // namespace heed::inline v0::kernels
