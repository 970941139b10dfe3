/// The weights of attention as a part of the graph.
#pragma once

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/nn/ops.h"
#include "heed/nn/variable.h"

namespace heed { inline namespace v0 { namespace nn {

/// What attention(query, key, value, options, learned) multiplies values by, before dropout:
/// [batch, num_heads, q_len, kv_len], for a loss on the weights themselves, as one that keeps heads
/// apart. A query that sees no key has weights 0.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]
/// Gradients go to both and to `learned` but for its relative_value, which no weight depends on.
///
/// Weights are attention to values of which each is a dimension of its own: what that takes in
/// time, forward and backward, grows with q_len · kv_len², and memory with kv_len² too. Layers
/// whose weights are only looked at return them as Attended::weights.
/// @throws InvalidArgument when shapes or options do not fit.
template <class T>
HEED_API Variable<T> attention_weights(const Variable<T>& query, const Variable<T>& key,
                                       const BasicAttentionOptions<T>& options = {},
                                       const LearnedTerms<T>& learned = {});

}}}  // namespace heed::v0::nn
