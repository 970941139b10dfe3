/// Learned sparsity: each query looks only at the blocks of keys that its own scores point to.
///
/// Sources: Lu et al., "MoBA: Mixture of Block Attention for Long-Context LLMs", 2025.
#pragma once

#include <cstdint>

#include "heed/attention/block_layout.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

struct SelectBlocksOptions {
  std::int64_t block = 128;  ///< keys in a block, 1 to 128
  /// How many blocks a query sees, its own among them where causal; at least 1. All where there are
  /// fewer.
  std::int64_t top_k = 8;
  /// So many queries in a row see the same blocks, 1 to 128; 1 where causal, for later queries
  /// would choose for earlier ones.
  std::int64_t q_block = 1;
  /// The last query stands at the last key, and no query sees a block behind its own: the mask
  /// causal(Alignment::bottom_right()). A query in front of all keys sees none.
  bool causal = false;
  /// Query heads that share a key head choose together, by the sum of their affinities, and see
  /// the same blocks: Yuan et al., "Native Sparse Attention", 2025, so that keys are read once for
  /// all of them. Otherwise each chooses for itself, as published by Lu et al.
  bool per_kv_head = false;
};

/// The blocks of keys that the queries of a call are most alike. Block j of keys is worth to a
/// query, or to the mean of the queries of a block,
///
///     affinity_j = q · mean(k of block j),
///
/// and the top_k blocks that are worth most are seen; of equals those that come first. Where
/// causal, the block that the query stands in is one of the top_k whatever it is worth, and those
/// behind it are none. A NaN is worth more than any number, so that it reaches the output as it
/// does without a selection. Affinities are computed in double, elements in order: the selection
/// depends neither on the instruction set nor on the number of threads.
///
/// The choice is a constant to gradients; what is chosen gets them from attention under the mask:
///
///     Mask::blocks(select_blocks(query, key, {.causal = true}),
///                  causal(Alignment::bottom_right()))
///
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]; num_heads is a multiple of num_kv_heads.
///        Any strides but in the innermost dimension, which is contiguous; any extent may be 0.
/// @return a layout of batch × num_heads, with blocks of q_block × block; partial are those of
///         which causal hides keys. Heads that choose together have the same blocks each. Time is
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
