/// The textbook version of attention, in plain loops: the specification that the fast kernels are
/// tested against. It can return every intermediate result.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "heed/attention.h"
#include "heed/attention/backward.h"
#include "heed/attention/diagnostics.h"
#include "heed/attention/linear_attention.h"
#include "heed/attention/statistics.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace reference {

/// The steps whose results can be kept; combine them with |. Each is [batch, num_heads, q_len,
/// kv_len].
enum class Keep : std::uint32_t {
  kNothing = 0,
  kScores = 1,    ///< scale · query · key
  kCapped = 2,    ///< after the softcap
  kModified = 4,  ///< after score_mod and bias
  kMasked = 8,    ///< after the mask: −infinity where a key is not visible
  kWeights = 16,  ///< after the softmax
  kDropped = 32,  ///< after dropout: the factors of the values
  kEverything = 63,
};
/// The steps of both.
constexpr Keep operator|(Keep a, Keep b) {
  return static_cast<Keep>(static_cast<std::uint32_t>(a) | static_cast<std::uint32_t>(b));
}
/// True if `kept` contains `step`.
constexpr bool has(Keep kept, Keep step) {
  return (static_cast<std::uint32_t>(kept) & static_cast<std::uint32_t>(step)) != 0;
}

/// The results of attention. Steps that were not to be kept are empty; without them memory is
/// linear in the lengths. A masked score is computed only when it is kept, and never influences a
/// result.
template <class Real>
struct Result {
  Tensor<Real> out;  ///< [batch, num_heads, q_len, value_dim]
  Tensor<Real> lse;  ///< [batch, num_heads, q_len]: log Σ exp(masked score), the sink included;
                     ///< −infinity for no key
  Tensor<Real> scores;
  Tensor<Real> capped;
  Tensor<Real> modified;
  Tensor<Real> masked;
  Tensor<Real> weights;
  Tensor<Real> dropped;
};

/// heed::attention by its definition: the same shapes, options and errors.
HEED_API Result<float> attention(FloatView query, FloatView key, FloatView value,
                                 const AttentionOptions& options = {}, Keep keep = Keep::kNothing);
HEED_API Result<double> attention(DoubleView query, DoubleView key, DoubleView value,
                                  const AttentionOptions64& options = {},
                                  Keep keep = Keep::kNothing);
/// attention() of bfloat16. With Precision::kFast weights are rounded to bfloat16 before they are
/// multiplied by values, the result is not; with kExact all is computed in float.
HEED_API Result<float> attention(BFloat16View query, BFloat16View key, BFloat16View value,
                                 const AttentionOptions& options = {}, Keep keep = Keep::kNothing);

/// The options of attention with functions that change whole matrices [batch, num_heads, q_len,
/// kv_len]: ONNX's operator FlexAttention.
template <class Real>
struct FlexOptions {
  /// Changes the scores, scale · query · key, before the softmax; −infinity hides a key, whose
  /// value may then hold NaN.
  std::function<void(TensorView<Real> scores)> score_mod = {};
  /// Changes the weights after the softmax.
  std::function<void(TensorView<Real> weights)> prob_mod = {};
  std::optional<Real> scale = std::nullopt;  ///< 1/√head_dim when not given
};

/// prob_mod(softmax(score_mod(scale · query · keyᵀ))) · value, for the shapes that attention()
/// takes.
/// @return [batch, num_heads, q_len, value_dim]
/// @throws InvalidArgument when shapes or the scale do not fit; exceptions of the functions pass
/// through.
HEED_API Tensor<float> flex_attention(FloatView query, FloatView key, FloatView value,
                                      const FlexOptions<float>& options = {});
HEED_API Tensor<double> flex_attention(DoubleView query, DoubleView key, DoubleView value,
                                       const FlexOptions<double>& options = {});

template <class Real>
using Gradients = AttentionGradients<Real>;

/// The gradients of attention() by the chain rule, given grad_out [batch, num_heads, q_len,
/// value_dim], the derivative of the loss with respect to out:
///
///     grad_value  = droppedᵀ · grad_out
///     grad_weight = (grad_out · valueᵀ) ∘ dropped / weights
///     grad_masked = weights ∘ (grad_weight − Σ_k weights ∘ grad_weight)
///     grad_query  = scale · grad_score · key,   grad_key = scale · grad_scoreᵀ · query
///
/// with grad_score = grad_masked through bias, score_mod and softcap. Keys that are not visible
/// receive 0.
/// @throws InvalidArgument as attention() does.
HEED_API Gradients<float> attention_backward(FloatView grad_out, FloatView query, FloatView key,
                                             FloatView value, const AttentionOptions& options = {});
HEED_API Gradients<double> attention_backward(DoubleView grad_out, DoubleView query, DoubleView key,
                                              DoubleView value,
                                              const AttentionOptions64& options = {});
/// attention_backward() of bfloat16. With Precision::kFast weights and scale · grad_score are
/// rounded to bfloat16 before they are multiplied; with kExact all is computed in float.
HEED_API Gradients<float> attention_backward(BFloat16View grad_out, BFloat16View query,
                                             BFloat16View key, BFloat16View value,
                                             const AttentionOptions& options = {});

/// heed::attention_weights and heed::attention_statistics, row by row: the same shapes, options and
/// errors.
HEED_API Tensor<float> attention_weights(FloatView query, FloatView key,
                                         std::span<const AttentionRow> rows,
                                         const AttentionOptions& options = {});
HEED_API Tensor<double> attention_weights(DoubleView query, DoubleView key,
                                          std::span<const AttentionRow> rows,
                                          const AttentionOptions64& options = {});
HEED_API AttentionStatistics attention_statistics(FloatView query, FloatView key,
                                                  const AttentionOptions& options = {},
                                                  const StatisticsOptions& statistics = {});
HEED_API BasicAttentionStatistics<double> attention_statistics(
    DoubleView query, DoubleView key, const AttentionOptions64& options = {},
    const StatisticsOptions& statistics = {});

/// heed::linear_attention token by token: the same shapes, options and errors.
HEED_API LinearAttentionOutput<float> linear_attention(FloatView query, FloatView key,
                                                       FloatView value,
                                                       const LinearAttentionOptions& options = {});
HEED_API LinearAttentionOutput<double> linear_attention(
    DoubleView query, DoubleView key, DoubleView value,
    const LinearAttentionOptions64& options = {});

/// heed::feature_map_attention by its definition, in time quadratic in the length.
HEED_API Tensor<float> feature_map_attention(FloatView query, FloatView key, FloatView value,
                                             const FeatureMapOptions& options = {});
HEED_API Tensor<double> feature_map_attention(DoubleView query, DoubleView key, DoubleView value,
                                              const FeatureMapOptions& options = {});

/// heed::attention_diagnostics, row by row: the same shapes, options and errors.
HEED_API AttentionDiagnostics attention_diagnostics(FloatView query, FloatView key,
                                                    const AttentionOptions& options = {},
                                                    const DiagnosticsOptions& diagnostics = {});
HEED_API AttentionDiagnostics attention_diagnostics(DoubleView query, DoubleView key,
                                                    const AttentionOptions64& options = {},
                                                    const DiagnosticsOptions& diagnostics = {});

/// softmax(x)ᵢ = exp(xᵢ − max x) / Σⱼ exp(xⱼ − max x) over the last dimension, for any rank from 1.
/// An entry of −infinity gets 0, and a row of only −infinity is all 0.
/// @throws InvalidArgument when the rank is 0.
HEED_API Tensor<float> softmax(FloatView scores);
HEED_API Tensor<double> softmax(DoubleView scores);

/// exp(xᵢ) / Σⱼ exp(xⱼ), the formula of textbooks, which overflows to NaN for large scores. For
/// demonstration only.
/// @throws InvalidArgument when the rank is 0.
HEED_API Tensor<float> naive_softmax(FloatView scores);
HEED_API Tensor<double> naive_softmax(DoubleView scores);

/// grad_scores = weights ∘ (grad_weights − Σ weights ∘ grad_weights) over the last dimension, for
/// weights = softmax(scores).
/// @throws InvalidArgument when the shapes differ or the rank is 0.
HEED_API Tensor<float> softmax_backward(FloatView grad_weights, FloatView weights);
HEED_API Tensor<double> softmax_backward(DoubleView grad_weights, DoubleView weights);

}}}  // namespace heed::v0::reference
