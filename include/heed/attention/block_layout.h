/// The blocks of the scores that a mask shows: a sparse matrix of blocks, for Mask::blocks.
#pragma once

#include <cstdint>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The blocks of scores that are visible, in compressed rows: row i of blocks is the queries
/// i · q_block ≤ q < (i + 1) · q_block of a call, and block j the keys j · kv_block ≤ k <
/// (j + 1) · kv_block; the last ones may be shorter. Queries are counted from the first of the
/// call; query_offset is not included.
struct BlockLayout {
  std::int64_t batch = 1;      // 1: all batch entries share the blocks
  std::int64_t num_heads = 1;  // 1: all heads share the blocks
  std::int64_t q_len = 0;
  std::int64_t kv_len = 0;
  std::int64_t q_block = 128;   // 1 to 128
  std::int64_t kv_block = 128;  // 1 to 128
  /// [batch · num_heads · ⌈q_len / q_block⌉ + 1]: the index in `columns` at which each row of
  /// blocks begins, from 0; the last entry is the number of blocks.
  std::vector<std::int64_t> row_begin = {0};
  /// The blocks of keys of each row, rising.
  std::vector<std::int32_t> columns = {};
  /// As long as `columns`: not 0 for a block that is visible in part. Empty: all are full.
  std::vector<std::uint8_t> partial = {};

  /// Throws InvalidArgument that names `function` where the numbers contradict each other.
  HEED_API void check(const char* function) const;

  /// The blocks of a mask, without those in which nothing is visible; blocks that are visible in
  /// part are partial. In a call of this shape Mask::blocks(BlockLayout::from(mask, shape), mask)
  /// equals the mask, and its tiles are found faster where the mask is a function or a tensor.
  /// @throws InvalidArgument when the mask does not fit the shape, or a block is not 1 to 128.
  HEED_API static BlockLayout from(const Mask& mask, const ScoreShape& shape,
                                   std::int64_t q_block = 128, std::int64_t kv_block = 128);

  friend bool operator==(const BlockLayout&, const BlockLayout&) = default;
};

}}  // namespace heed::v0
