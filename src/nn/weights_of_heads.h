// The weights that a call of attention was asked to show.
#pragma once

#include "heed/nn/attention_layers.h"

namespace heed { inline namespace v0 { namespace nn {

// All weights [batch, num_heads, q_len, kv_len] or those of some rows [rows, kv_len], after
// dropout, as `wanted` says; empty where it asks for none. `options` is what attention was computed
// with.
template <class T>
Tensor<T> wanted_weights(const Heads<T>& query, const Heads<T>& key, const AttendOptions<T>& wanted,
                         const BasicAttentionOptions<T>& options);

// The options of the operator that one call's say, with views of its terms.
template <class T>
BasicAttentionOptions<T> operator_options(const AttendOptions<T>& options,
                                          const heed::Dropout& dropout);

}}}  // namespace heed::v0::nn
