/// Weights of chosen rows, and statistics of all rows and keys, without the matrix of weights:
/// memory is linear in the lengths, plus the result.
///
/// Weights are those of the softmax, before dropout; dropout options are checked and otherwise
/// ignored:
///
///     w[k] = exp(s[k] − lse),   lse = log Σ exp(s[k]), the sink included
///
/// with s the scores after softcap, score_mod, bias and mask. Under a sink the weights of a row sum
/// to less than 1. A key that is not visible has weight 0, and so has one whose weight is below
/// 2⁻¹⁰⁰. docs/looking_inside.md shows examples.
#pragma once

#include <cstdint>
#include <span>

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// A row of the weights: one query of one head.
struct AttentionRow {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t query = 0;  ///< its index in the call; query_offset is not included
};

/// The weights of the given rows, which may come in any order and more than once.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]; both in any layout that attention() takes
/// @return [rows, kv_len]: row i holds the weights of rows[i]. A query that sees no key has only
/// zeros; one that sees NaN or infinity has NaN for the keys it sees. Other rows are not computed.
/// @throws InvalidArgument when shapes or options do not fit or a row does not exist, before
/// anything is computed.
HEED_API Tensor<float> attention_weights(FloatView query, FloatView key,
                                         std::span<const AttentionRow> rows,
                                         const AttentionOptions& options = {});
HEED_API Tensor<float> attention_weights(Float16View query, Float16View key,
                                         std::span<const AttentionRow> rows,
                                         const AttentionOptions& options = {});
HEED_API Tensor<float> attention_weights(BFloat16View query, BFloat16View key,
                                         std::span<const AttentionRow> rows,
                                         const AttentionOptions& options = {});
HEED_API Tensor<double> attention_weights(DoubleView query, DoubleView key,
                                          std::span<const AttentionRow> rows,
                                          const AttentionOptions64& options = {});

/// Optional parts of attention_statistics().
struct StatisticsOptions {
  /// The number of largest weights to keep of each row. Time grows with it.
  std::int64_t top_k = 0;
};

/// Statistics of attention weights, for each row and each key.
///
/// A row that sees no key has entropy 0, max_weight 0 and max_key −1. In a row that sees NaN or
/// infinity every number is NaN and every key −1, and the mass of the keys it sees is NaN.
template <class Real>
struct BasicAttentionStatistics {
  /// [batch, num_heads, q_len]: log Σ exp(s), the sink included; −infinity for no key
  Tensor<Real> lse;
  /// [batch, num_heads, q_len]: −Σ w · ln w over the keys, in nats: 0 when one key has all the
  /// weight, ln n for n equal weights. The share of a sink is missing from w and no term of the
  /// sum.
  Tensor<Real> entropy;
  /// [batch, num_heads, q_len]: the largest weight, and its key; the first of equals
  Tensor<Real> max_weight;
  Tensor<std::int64_t> max_key;
  /// [batch, num_heads, q_len, top_k]: the largest weights, in falling order, and their keys; of
  /// equals the first key comes first. Where fewer keys have a weight above 0: weight 0, key −1.
  Tensor<Real> top_weights;
  Tensor<std::int64_t> top_keys;
  /// [batch, num_heads, kv_len]: Σ w over the queries: the attention a key receives
  Tensor<Real> key_mass;
};

/// Statistics of float and half-precision tensors.
using AttentionStatistics = BasicAttentionStatistics<float>;

/// Statistics of every row and key, with the same bits for any number of threads.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]; both in any layout that attention() takes
/// @throws InvalidArgument when shapes or options do not fit or top_k is negative, before anything
/// is computed.
HEED_API AttentionStatistics attention_statistics(FloatView query, FloatView key,
                                                  const AttentionOptions& options = {},
                                                  const StatisticsOptions& statistics = {});
HEED_API AttentionStatistics attention_statistics(Float16View query, Float16View key,
                                                  const AttentionOptions& options = {},
                                                  const StatisticsOptions& statistics = {});
HEED_API AttentionStatistics attention_statistics(BFloat16View query, BFloat16View key,
                                                  const AttentionOptions& options = {},
                                                  const StatisticsOptions& statistics = {});
HEED_API BasicAttentionStatistics<double> attention_statistics(
    DoubleView query, DoubleView key, const AttentionOptions64& options = {},
    const StatisticsOptions& statistics = {});

}}  // namespace heed::v0
