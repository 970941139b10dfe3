/// Attention of several sequences of different lengths that lie one behind the other in one tensor.
#pragma once

#include <cstdint>
#include <span>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// Where the sequences of a packed batch begin and end: sequence i is the rows cu_seqlens[i] ≤ t <
/// cu_seqlens[i + 1], and the last boundary is the number of rows.
struct PackedSequences {
  std::span<const std::int64_t> query;  ///< boundaries in the query
  std::span<const std::int64_t> key;    ///< boundaries in key and value; as many
};

/// attention() of each sequence for itself: the same bits as if it were called with sequence i
/// alone, as entry i of a batch. Positions start at 0 (at query_offset) in every sequence, masks
/// are made for each length (causal_bottom_right() aligns each sequence's end), and a bias or a
/// mask given as a tensor must broadcast to every sequence's [batch, num_heads, q_len, kv_len].
///
/// @param query [total_q_len, num_heads, head_dim]
/// @param key [total_kv_len, num_kv_heads, head_dim]
/// @param value [total_kv_len, num_kv_heads, value_dim]
/// @return out [total_q_len, num_heads, value_dim]
/// @throws InvalidArgument when boundaries do not start at 0, fall, or do not end at the length, or
/// where attention() would.
HEED_API Tensor<float> attention_packed(FloatView query, FloatView key, FloatView value,
                                        const PackedSequences& sequences,
                                        const AttentionOptions& options = {});
HEED_API Tensor<Float16> attention_packed(Float16View query, Float16View key, Float16View value,
                                          const PackedSequences& sequences,
                                          const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attention_packed(BFloat16View query, BFloat16View key, BFloat16View value,
                                           const PackedSequences& sequences,
                                           const AttentionOptions& options = {});
/// Of other operands: does not compile, and says which there are.
template <class Query, class Key, class Value>
requires detail::PackedMisfit<Query, Key, Value>
auto attention_packed(const Query&, const Key&, const Value&, const PackedSequences&,
                      const AttentionOptions& = {}) {
  static_assert(detail::kNever<Query>,
                "query, key and value of packed sequences are of one type, float, Float16 or "
                "BFloat16: write heed::converted<float>(view)");
  return Tensor<detail::Refused<Query>>();
}

/// The same with lse [num_heads, total_q_len].
HEED_API AttentionOutput<float> attention_packed_with_lse(FloatView query, FloatView key,
                                                          FloatView value,
                                                          const PackedSequences& sequences,
                                                          const AttentionOptions& options = {});

/// The gradients of attention_packed(): those of each sequence have the bits that
/// attention_backward() of it alone gives. The gradients of what the sequences share, ALiBi slopes,
/// bias and sinks, are these of the single sequences, added in their order in float.
///
/// @param grad_out [total_q_len, num_heads, value_dim], the derivative of the loss with respect to
/// out; any strides but in the innermost dimension, which is contiguous
/// @param forward what attention_packed_with_lse() made of the same tensors, sequences and options
///
/// The threads take work from all sequences together. With a bias, sequences come one after the
/// other: each has a gradient of the bias before it is added, for which there is memory once.
/// Memory is linear in the lengths and in the size of the bias.
/// @throws InvalidArgument when boundaries, shapes or options do not fit, before anything is
/// computed.
HEED_API AttentionGradients<float> attention_packed_backward(
    FloatView grad_out, FloatView query, FloatView key, FloatView value,
    const PackedSequences& sequences, const AttentionOutputView<float>& forward,
    const AttentionOptions& options = {});

}}  // namespace heed::v0
