// Layouts of blocks: their checks, and the layout of a mask.
#include "heed/attention/block_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "attention/masks/aligned.h"
#include "attention/masks/bound_mask.h"
#include "heed/core/cancellation.h"
#include "heed/core/error.h"

namespace heed { inline namespace v0 {

namespace {

using detail::check_number;
using kernels::kTileKeys;
using kernels::Visibility;

constexpr std::int64_t kMostKeys = std::numeric_limits<std::int32_t>::max();

// ⌈length / block⌉.
std::int64_t blocks_in(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

void check_blocks(const char* function, std::int64_t q_block, std::int64_t kv_block) {
  check_number(function, "q_block", q_block, 1, kTileKeys);
  check_number(function, "kv_block", kv_block, 1, kTileKeys);
}

void check_rows(const char* function, const BlockLayout& layout) {
  const auto size = static_cast<std::int64_t>(layout.columns.size());
  if (layout.row_begin.front() != 0 || layout.row_begin.back() != size) {
    throw InvalidArgument(
        fmt::format("{}: row_begin goes from {} to {}, expected from 0 to the {} columns", function,
                    layout.row_begin.front(), layout.row_begin.back(), size));
  }
  for (std::size_t row = 1; row < layout.row_begin.size(); ++row) {
    if (layout.row_begin[row] >= layout.row_begin[row - 1]) continue;
    throw InvalidArgument(
        fmt::format("{}: row_begin[{}] is {}, expected at least {}, the one before", function, row,
                    layout.row_begin[row], layout.row_begin[row - 1]));
  }
}

void check_columns(const char* function, const BlockLayout& layout) {
  const std::int64_t blocks = blocks_in(layout.kv_len, layout.kv_block);
  for (std::size_t row = 0; row + 1 < layout.row_begin.size(); ++row) {
    const auto first = static_cast<std::size_t>(layout.row_begin[row]);
    const auto end = static_cast<std::size_t>(layout.row_begin[row + 1]);
    for (std::size_t i = first; i < end; ++i) {
      if (layout.columns[i] < 0 || layout.columns[i] >= blocks) {
        throw InvalidArgument(fmt::format("{}: columns[{}] is {}, but there are {} blocks of keys",
                                          function, i, layout.columns[i], blocks));
      }
      if (i == first || layout.columns[i] > layout.columns[i - 1]) continue;
      throw InvalidArgument(
          fmt::format("{}: columns[{}] is {} and columns[{}] is {}, expected columns that rise in "
                      "each row",
                      function, i - 1, layout.columns[i - 1], i, layout.columns[i]));
    }
  }
}

// Finds the blocks of a mask, row of blocks by row of blocks.
class BlockFinder {
 public:
  BlockFinder(const Mask& mask, const ScoreShape& shape) : bound_(mask, shape) {}

  // Appends the row of blocks whose first query is `first`.
  void append(const detail::ScoreIndex& first, BlockLayout& layout) {
    const ScoreShape& shape = bound_.shape();
    const std::int64_t count = std::min(layout.q_block, layout.q_len - first.q);
    heads_.assign(static_cast<std::size_t>(count), static_cast<std::int32_t>(first.head));
    positions_.resize(heads_.size());
    for (std::int64_t r = 0; r < count; ++r) {
      positions_[static_cast<std::size_t>(r)] =
          static_cast<std::int32_t>(first.q + r + shape.query_offset[first.batch]);
    }
    const detail::RowGroup rows{static_cast<std::int32_t>(first.batch),
                                static_cast<std::int32_t>(count), heads_.data(), positions_.data()};
    const detail::GroupRanges ranges = bound_.ranges(rows);
    for (std::int64_t begin = 0; begin < layout.kv_len; begin += layout.kv_block) {
      const RowRange keys{begin, std::min(begin + layout.kv_block, layout.kv_len)};
      if (keys.end <= ranges.of_any.begin || keys.begin >= ranges.of_any.end) continue;
      Visibility seen = visibility(rows, keys);
      const bool is_whole = (keys & ranges.of_all) == keys;
      if (seen == Visibility::kMixed || (seen == Visibility::kAll && !is_whole)) {
        seen = look(first, count, keys);
      }
      if (seen == Visibility::kNone) continue;
      layout.columns.push_back(static_cast<std::int32_t>(begin / layout.kv_block));
      layout.partial.push_back(seen == Visibility::kMixed ? 1 : 0);
    }
    layout.row_begin.push_back(static_cast<std::int64_t>(layout.columns.size()));
  }

 private:
  // The visibility of a block. The mask takes the rows of at most one panel and the keys of at
  // most one tile at a time.
  Visibility visibility(const detail::RowGroup& rows, RowRange keys) const {
    std::optional<Visibility> all;
    for (std::int32_t first = 0; first < rows.num_rows; first += kernels::kMaxPanelWidth) {
      const detail::RowGroup some{rows.batch,
                                  std::min(kernels::kMaxPanelWidth, rows.num_rows - first),
                                  rows.heads + first, rows.q_idx + first};
      for (RowRange part = keys; part.begin < keys.end; part.begin = part.end) {
        part.end = std::min(detail::tile_of(part) + kernels::kTileKeys, keys.end);
        const Visibility seen = bound_.visibility(some, part);
        if (seen == Visibility::kMixed || (all && seen != *all)) return Visibility::kMixed;
        all = seen;
      }
    }
    return *all;
  }

  // The visibility found by looking at each query and key.
  Visibility look(const detail::ScoreIndex& first, std::int64_t count, RowRange keys) const {
    check_cancelled();
    bool any = false;
    bool all = true;
    for (std::int64_t r = 0; r < count; ++r) {
      for (std::int64_t k = keys.begin; k < keys.end; ++k) {
        const bool is_visible = bound_.visible({first.batch, first.head, first.q + r, k});
        any = any || is_visible;
        all = all && is_visible;
        if (any && !all) return Visibility::kMixed;
      }
    }
    return all ? Visibility::kAll : Visibility::kNone;
  }

  BoundMask bound_;
  std::vector<std::int32_t> heads_;
  std::vector<std::int32_t> positions_;
};

}  // namespace

void BlockLayout::check(const char* function) const {
  check_blocks(function, q_block, kv_block);
  check_number(function, "batch", batch, 0, kMostKeys);
  check_number(function, "num_heads", num_heads, 0, kMostKeys);
  check_number(function, "q_len", q_len, 0, kMostKeys);
  check_number(function, "kv_len", kv_len, 0, kMostKeys);
  const std::int64_t rows =
      Shape{batch, num_heads, blocks_in(q_len, q_block)}.num_elements();  // throws where too many
  if (static_cast<std::int64_t>(row_begin.size()) != rows + 1) {
    throw InvalidArgument(
        fmt::format("{}: row_begin has {} numbers, expected batch · num_heads · ⌈q_len / q_block⌉ "
                    "+ 1 = {}",
                    function, row_begin.size(), rows + 1));
  }
  check_rows(function, *this);
  check_columns(function, *this);
  if (!partial.empty() && partial.size() != columns.size()) {
    throw InvalidArgument(fmt::format("{}: partial has {} numbers but columns {}", function,
                                      partial.size(), columns.size()));
  }
}

BlockLayout BlockLayout::from(const Mask& mask, const ScoreShape& shape, std::int64_t q_block,
                              std::int64_t kv_block) {
  check_blocks("BlockLayout::from", q_block, kv_block);
  BlockLayout layout{.batch = shape.batch,
                     .num_heads = shape.num_heads,
                     .q_len = shape.q_len,
                     .kv_len = shape.kv_len,
                     .q_block = q_block,
                     .kv_block = kv_block};
  BlockFinder blocks(mask, shape);
  for (std::int64_t batch = 0; batch < shape.batch; ++batch) {
    for (std::int64_t head = 0; head < shape.num_heads; ++head) {
      for (std::int64_t q = 0; q < shape.q_len; q += q_block) {
        check_cancelled();
        blocks.append({batch, head, q, 0}, layout);
      }
    }
  }
  return layout;
}

}}  // namespace heed::v0
