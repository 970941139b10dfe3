/// Attention weights as variables of the graph.
#pragma once

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/nn/ops.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// The weights of attention(query, key, value, options, learned) before dropout, [batch, num_heads,
/// q_len, kv_len], for a loss on the weights themselves. A query that sees no key has weights 0.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]
/// Gradients go to both and to `learned`, except its relative_value, on which no weight depends.
///
/// The weights are computed as attention to values that are unit vectors, one dimension per key:
/// the time of forward and backward pass is proportional to q_len · kv_len², and memory grows with
/// kv_len². To read weights without gradients, use Attended::weights.
/// @throws InvalidArgument when shapes or options do not fit.
template <class T>
HEED_API Variable<T> attention_weights(const Variable<T>& query, const Variable<T>& key,
                                       const BasicAttentionOptions<T>& options = {},
                                       const LearnedTerms<T>& learned = {});

}}}  // namespace heed::v0::nn
