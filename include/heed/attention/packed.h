/// Attention of sequences of different lengths that follow each other in one tensor.
#pragma once

#include <cstdint>
#include <span>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The boundaries of the sequences of a packed batch: sequence i is the rows cu_seqlens[i] ≤ t <
/// cu_seqlens[i + 1], and the last boundary is the number of rows.
struct PackedSequences {
  std::span<const std::int64_t> query;  ///< boundaries in the query
  std::span<const std::int64_t> key;    ///< boundaries in key and value; as many as in query
};

/// attention() of each sequence, with the same bits as attention() of sequence i alone as entry i
/// of a batch. Positions start at 0 (at query_offset) in every sequence, masks are made for each
/// length (causal_bottom_right() aligns each sequence's end), and a bias or a mask given as a
/// tensor must broadcast to every sequence's [batch, num_heads, q_len, kv_len].
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
/// attention_packed() of any other operand types: does not compile; the error lists the types that
/// do.
template <class Query, class Key, class Value>
requires detail::PackedMisfit<Query, Key, Value>
auto attention_packed(const Query&, const Key&, const Value&, const PackedSequences&,
                      const AttentionOptions& = {}) {
  static_assert(detail::kNever<Query>,
                "query, key and value of packed sequences are of one type, float, Float16 or "
                "BFloat16: write heed::converted<float>(view)");
  return Tensor<detail::Refused<Query>>();
}

/// attention_packed() with lse [num_heads, total_q_len].
/// @throws InvalidArgument as attention_packed() does.
HEED_API AttentionOutput<float> attention_packed_with_lse(FloatView query, FloatView key,
                                                          FloatView value,
                                                          const PackedSequences& sequences,
                                                          const AttentionOptions& options = {});

/// The gradients of attention_packed(). Those of each sequence have the bits of
/// attention_backward() for this sequence alone. The gradients of options that the sequences share,
/// ALiBi slopes, bias and sinks, are summed over the sequences, in order and in float.
///
/// @param grad_out [total_q_len, num_heads, value_dim], the derivative of the loss with respect to
/// out; the innermost dimension is contiguous, the others have any strides
/// @param forward the result of attention_packed_with_lse() for the same tensors, sequences and
/// options
///
/// Threads process all sequences together. With a bias, sequences are processed one after the
/// other, because each first needs a gradient of the bias of its own, for which memory is allocated
/// once. Memory is linear in the lengths and in the size of the bias.
/// @throws InvalidArgument when boundaries, shapes or options do not fit, before anything is
/// computed.
HEED_API AttentionGradients<float> attention_packed_backward(
    FloatView grad_out, FloatView query, FloatView key, FloatView value,
    const PackedSequences& sequences, const AttentionOutputView<float>& forward,
    const AttentionOptions& options = {});

}}  // namespace heed::v0
