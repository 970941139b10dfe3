/// Projections and multi-head attention as plain functions of their parameters.
#pragma once

#include <array>
#include <cstdint>

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/core/random.h"
#include "heed/core/tensor.h"
#include "heed/nn/init.h"

namespace heed { inline namespace v0 {

/// y = x · weightᵀ + bias for x [..., in_features] of rank 1 to 6 and weight
/// [out_features, in_features]: y is [..., out_features]. An empty bias adds nothing.
/// @throws InvalidArgument when the shapes do not fit.
HEED_API Tensor<float> linear(FloatView x, const LinearParameters<float>& parameters);
HEED_API Tensor<double> linear(DoubleView x, const LinearParameters<double>& parameters);

/// The rows of `table` [num_embeddings, embedding_dim] with the indices token_ids [...]:
/// [..., embedding_dim]. @throws InvalidArgument when an id is not a row of the table.
HEED_API Tensor<float> embedding(TensorView<const std::int64_t> token_ids, FloatView table);

/// The heads of x [batch, length, num_heads · head_dim] as a view
/// [batch, num_heads, length, head_dim]; the heads of a temporary tensor are copied.
/// @throws InvalidArgument when x is not of rank 3 or its width is not a multiple of num_heads.
HEED_API FloatView split_heads(FloatView x, std::int64_t num_heads);
HEED_API DoubleView split_heads(DoubleView x, std::int64_t num_heads);
HEED_API Tensor<float> split_heads(Tensor<float>&& x, std::int64_t num_heads);
HEED_API Tensor<double> split_heads(Tensor<double>&& x, std::int64_t num_heads);

/// The inverse of split_heads: from [batch, num_heads, length, head_dim] to
/// [batch, length, num_heads · head_dim].
/// @throws InvalidArgument when the rank is not 4.
HEED_API Tensor<float> merge_heads(FloatView heads);
HEED_API Tensor<double> merge_heads(DoubleView heads);

/// The four projections of multi-head attention.
template <class Real>
struct AttentionParameters {
  LinearParameters<Real> query;  ///< weight [num_heads · head_dim, embed_dim]
  LinearParameters<Real> key;    ///< weight [num_heads · head_dim, embed_dim]
  LinearParameters<Real> value;  ///< weight [num_heads · head_dim, embed_dim]
  LinearParameters<Real> out;    ///< weight [embed_dim, num_heads · head_dim]

  /// The number of weights and biases.
  std::int64_t num_parameters() const {
    std::int64_t count = 0;
    for (const auto* projection : {&query, &key, &value, &out}) {
      count += projection->weight.num_elements() + projection->bias.num_elements();
    }
    return count;
  }
};

/// Draws four projections between embed_dim and inner_dim = num_heads · head_dim in the order
/// query, key, value, out, each as linear_init does.
/// @throws InvalidArgument when a size is negative.
HEED_API AttentionParameters<float> attention_init(TorchGenerator& generator,
                                                   std::int64_t embed_dim, std::int64_t inner_dim,
                                                   bool bias = true);

/// Splits a projection that computes query, key and value, concatenated in this order (weight [3 ·
/// inner_dim, embed_dim]), into three.
/// @throws InvalidArgument when the number of outputs is not a multiple of 3.
HEED_API std::array<LinearParameters<float>, 3> split_qkv(const LinearParameters<float>& fused);

/// The result of multi-head attention.
template <class Real>
struct MultiHeadOutput {
  Tensor<Real> out;      ///< [batch, q_len, embed_dim]
  Tensor<Real> weights;  ///< [batch, num_heads, q_len, kv_len], after dropout
};

/// Multi-head attention of `x` [batch, q_len, embed_dim] to `context` [batch, kv_len, embed_dim]:
/// self-attention for context = x, otherwise cross-attention:
///
///     out = merge_heads(attention(split_heads(query(x)), split_heads(key(context)),
///                                 split_heads(value(context)))) · out.weightᵀ + out.bias
///
/// All weights are returned, so memory grows with q_len · kv_len.
/// Source: Vaswani et al., "Attention Is All You Need", 2017, section 3.2.2.
/// @throws InvalidArgument when shapes, heads or options do not fit.
HEED_API MultiHeadOutput<float> multi_head_attention(FloatView x, FloatView context,
                                                     const AttentionParameters<float>& parameters,
                                                     std::int64_t num_heads,
                                                     const AttentionOptions& options = {});
HEED_API MultiHeadOutput<double> multi_head_attention(DoubleView x, DoubleView context,
                                                      const AttentionParameters<double>& parameters,
                                                      std::int64_t num_heads,
                                                      const AttentionOptions64& options = {});

}}  // namespace heed::v0
