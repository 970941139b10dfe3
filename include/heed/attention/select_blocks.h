/// Learned sparsity: each query sees only the blocks of keys that its own scores select.
///
/// Sources: Lu et al., "MoBA: Mixture of Block Attention for Long-Context LLMs", 2025.
#pragma once

#include <cstdint>

#include "heed/attention/block_layout.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The options of select_blocks.
struct SelectBlocksOptions {
  std::int64_t block = 128;  ///< keys in a block, 1 to 128
  /// The number of blocks that a query sees, including its own if causal; at least 1. All where
  /// there are fewer.
  std::int64_t top_k = 8;
  /// The number of consecutive queries that share their blocks, 1 to 128; 1 if causal, because
  /// later queries would affect the choice of earlier ones.
  std::int64_t q_block = 1;
  /// The last query is at the last key, and no query sees a block after its own: use with the mask
  /// causal(Alignment::bottom_right()). A query before all keys sees none.
  bool causal = false;
  /// Query heads that share a key head select the same blocks, by the sum of their affinities, so
  /// that keys are read once for all of them: Yuan et al., "Native Sparse Attention", 2025.
  /// Otherwise each head selects its own, as published by Lu et al.
  bool per_kv_head = false;
};

/// Selects the blocks of keys with the highest affinity for the queries of a call. The affinity of
/// block j of keys for a query, or for the mean of the queries of a block, is
///
///     affinity_j = q · mean(k of block j),
///
/// and the top_k blocks with the highest affinity are selected, the earlier ones of equals. If
/// causal, the block of the query itself is always one of the top_k, and later blocks are never
/// selected. A NaN counts as higher than any number, so that it reaches the output as without
/// selection. Affinities are computed in double, elements in order: the selection depends neither
/// on the instruction set nor on the number of threads.
///
/// The selection has no gradient; the selected keys get theirs from attention under the mask:
///
///     Mask::blocks(select_blocks(query, key, {.causal = true}),
///                  causal(Alignment::bottom_right()))
///
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]; num_heads is a multiple of num_kv_heads.
///        The innermost dimension is contiguous, the others have any strides; any extent may be 0.
/// @return a layout of batch × num_heads, with blocks of q_block × block; partial where the causal
///         mask hides keys. Heads that select together have the same blocks. Time is
///         proportional to batch · num_heads · head_dim · q_len / q_block · kv_len / block.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API BlockLayout select_blocks(FloatView query, FloatView key,
                                   const SelectBlocksOptions& options = {});
HEED_API BlockLayout select_blocks(DoubleView query, DoubleView key,
                                   const SelectBlocksOptions& options = {});
HEED_API BlockLayout select_blocks(Float16View query, Float16View key,
                                   const SelectBlocksOptions& options = {});
HEED_API BlockLayout select_blocks(BFloat16View query, BFloat16View key,
                                   const SelectBlocksOptions& options = {});

}}  // namespace heed::v0
