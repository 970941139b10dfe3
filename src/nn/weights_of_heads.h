// The attention weights that a call returns on request.
#pragma once

#include "heed/nn/attention_layers.h"

namespace heed { inline namespace v0 { namespace nn {

// Returns the weights after dropout that `wanted` requests: all of them [batch, num_heads, q_len,
// kv_len], those of some rows [rows, kv_len], or an empty tensor. `options` are those of the call
// that computed attention.
template <class T>
Tensor<T> wanted_weights(const Heads<T>& query, const Heads<T>& key, const AttendOptions<T>& wanted,
                         const BasicAttentionOptions<T>& options);

// Converts a call's options to those of the operator, with views of their terms.
template <class T>
BasicAttentionOptions<T> operator_options(const AttendOptions<T>& options,
                                          const heed::Dropout& dropout);

}}}  // namespace heed::v0::nn
