/// Which blocks of the scores a mask shows: a sparse matrix of blocks, for Mask::blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The blocks of scores that are looked at, in compressed rows: row i of blocks is the queries
/// i · q_block ≤ q < (i + 1) · q_block of a call, and block j the keys j · kv_block ≤ k <
/// (j + 1) · kv_block; the last ones may be shorter. Queries are counted from the first of the
/// call, whatever their position.
struct BlockLayout {
  std::int64_t batch = 1;      // 1: the same in every batch entry
  std::int64_t num_heads = 1;  // 1: the same in every head
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t q_block = 128;   // 1 to 128
  std::int64_t kv_block = 128;  // 1 to 128
  /// [batch · num_heads · ⌈q_len / q_block⌉ + 1]: where in `columns` each row of blocks begins,
  /// from 0; the last is how many blocks there are.
  std::vector<std::int64_t> row_begin = {0};
  /// The blocks of keys of each row, rising.
  std::vector<std::int32_t> columns = {};
  /// As long as `columns`: not 0 for a block that is shown in part. Or empty: all are full.
  std::vector<std::uint8_t> partial = {};

  /// Throws InvalidArgument naming `function` where the numbers contradict each other.
  HEED_API void check(const char* function) const;

  /// The blocks of a mask: those that show nothing are left out, and those that do not show all are
  /// partial. Mask::blocks(BlockLayout::from(mask, shape), mask) shows what the mask shows in a
  /// call of this shape, whose tiles are found faster where the mask is a function or a tensor.
  /// @throws InvalidArgument when the mask does not fit the shape, or a block is not 1 to 128.
  HEED_API static BlockLayout from(const Mask& mask, const ScoreShape& shape,
                                   std::int64_t q_block = 128, std::int64_t kv_block = 128);

  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

}}  // namespace heed::v0
