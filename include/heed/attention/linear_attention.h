/// Attention in time linear in the length: instead of a softmax over all keys, a state that every
/// token updates.
///
/// Sources: Katharopoulos et al., "Transformers are RNNs", 2020 (feature maps); Yang et al., "Gated
/// Linear Attention Transformers", 2023; Schlag et al., "Linear Transformers Are Secretly Fast
/// Weight Programmers", 2021 (the delta rule); Yang et al., "Gated Delta Networks", 2024; ONNX's
/// operator LinearAttention, opset 27. The contract is docs/linear_attention.md.
#pragma once

#include <cstdint>
#include <optional>

#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// The options of linear_attention. decay and beta select the rule by which token t updates the
/// state S, [head_dim, value_dim]:
///
/// | rule | given | |
/// |---|---|---|
/// | linear | neither | S ← S + k ⊗ v |
/// | gated | decay g | S ← exp(g) ∘ S + k ⊗ v |
/// | delta | beta β | S ← S + β k ⊗ (v − Sᵀk) |
/// | gated delta | both | S ← exp(g) ∘ S, then as delta |
template <class Real>
struct BasicLinearAttentionOptions {
  /// g, the logarithm of the factor on each row of the state; broadcasts, aligned at the right, to
  /// [batch, num_states, length, head_dim]. [batch, num_states, length, 1] is one number per head.
  /// The innermost dimension is contiguous, the others have any strides.
  std::optional<TensorView<const Real>> decay = std::nullopt;
  /// β, the share of the value stored for the key that is replaced; broadcasts to [batch,
  /// num_states, length]. Any strides.
  std::optional<TensorView<const Real>> beta = std::nullopt;
  /// The state before the first token, [batch, num_states, head_dim, value_dim]; 0 when not
  /// given.
  std::optional<TensorView<const Real>> state = std::nullopt;
  /// 1/√head_dim when not given.
  std::optional<Real> scale = std::nullopt;
};

/// Options of float and half-precision tensors, and of double tensors.
using LinearAttentionOptions = BasicLinearAttentionOptions<float>;
using LinearAttentionOptions64 = BasicLinearAttentionOptions<double>;

/// The state of half-precision tensors is float.
template <class T, class Real = T>
struct LinearAttentionOutput {
  Tensor<T> out;       ///< [batch, out_heads, length, value_dim]
  Tensor<Real> state;  ///< [batch, num_states, head_dim, value_dim], after the last token
};

/// out_t = scale · S_tᵀ q_t, where S_t is the state after token t.
/// @param query [batch, num_heads, length, head_dim]
/// @param key [batch, num_kv_heads, length, head_dim]; the delta rules expect rows of norm 1
/// @param value [batch, num_states, length, value_dim]
/// num_heads and num_states are multiples of num_kv_heads. Each head of values has a state, and key
/// head s / (num_states / num_kv_heads) writes to state s. The larger of num_heads and num_states
/// is a multiple of the other and is the number of heads of the output, out_heads: head h reads
/// state h / (out_heads / num_states) by query head h / (out_heads / num_heads). Models have as
/// many heads of values as of keys or, as Qwen3-Next, a multiple. The innermost dimension is
/// contiguous, the others have any strides; any extent may be 0.
///
/// Tokens may come in one call or in many, each of which continues from the state of the one
/// before: the bits are the same, for any number of threads. Time is proportional to length ·
/// out_heads · head_dim · value_dim; memory beyond the result is one state per thread.
/// Half-precision tensors are converted to float. Double tensors are computed by the reference.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API LinearAttentionOutput<float> linear_attention(FloatView query, FloatView key,
                                                       FloatView value,
                                                       const LinearAttentionOptions& options = {});
HEED_API LinearAttentionOutput<Float16, float> linear_attention(
    Float16View query, Float16View key, Float16View value,
    const LinearAttentionOptions& options = {});
HEED_API LinearAttentionOutput<BFloat16, float> linear_attention(
    BFloat16View query, BFloat16View key, BFloat16View value,
    const LinearAttentionOptions& options = {});
HEED_API LinearAttentionOutput<double> linear_attention(
    DoubleView query, DoubleView key, DoubleView value,
    const LinearAttentionOptions64& options = {});

/// The derivatives of a loss with respect to the inputs of linear_attention, each in the shape of
/// its input.
template <class Real>
struct LinearAttentionGradients {
  Tensor<Real> query;
  Tensor<Real> key;
  Tensor<Real> value;
  Tensor<Real> decay;  ///< empty without decay
  Tensor<Real> beta;   ///< empty without beta
  Tensor<Real> state;  ///< of the state before the first token, even if it was not given
};

/// The derivatives of a loss with respect to the results of linear_attention.
template <class Real>
struct LinearAttentionLoss {
  TensorView<const Real> grad_out;  ///< [batch, out_heads, length, value_dim]
  /// [batch, num_states, head_dim, value_dim]: with respect to the state after the last token; 0
  /// when not given
  std::optional<TensorView<const Real>> grad_state = std::nullopt;
};

/// The gradients of linear_attention(query, key, value, options). With the derivative D of the loss
/// with respect to the state, from the last token to the first:
///
///     grad_q = scale · S · grad_out,   D ← D + scale · q ⊗ grad_out
///     linear:  grad_v = Dᵀk,      grad_k = D v
///     delta:   with e = v − Sᵀk before the update and d = Dᵀk:
///              grad_β = d · e,  grad_v = β d,  grad_k = β (D e − S d),  D ← D − β k ⊗ d
///     gated:   grad_g = Σ D ∘ exp(g) S,   D ← exp(g) ∘ D
///
/// One state in every 32 is kept and the others are computed again: memory is length / 32 states.
/// Plain loops, heads in parallel.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API LinearAttentionGradients<float> linear_attention_backward(
    const LinearAttentionLoss<float>& loss, FloatView query, FloatView key, FloatView value,
    const LinearAttentionOptions& options = {});
HEED_API LinearAttentionGradients<double> linear_attention_backward(
    const LinearAttentionLoss<double>& loss, DoubleView query, DoubleView key, DoubleView value,
    const LinearAttentionOptions64& options = {});

/// The feature map φ of feature_map_attention. Features are not negative, so similarities are not.
enum class FeatureMap : std::uint8_t {
  kEluPlusOne,  ///< x + 1 for x > 0, exp(x) otherwise
  kRelu,        ///< max(x, 0)
};

/// The options of feature_map_attention.
struct FeatureMapOptions {
  FeatureMap feature_map = FeatureMap::kEluPlusOne;
  /// A query sees no later key; there must be as many queries as keys.
  bool causal = false;
  /// True if the weights of a query are divided by their sum.
  bool normalized = true;
};

/// Attention whose weights are products of features instead of a softmax:
///
///     out_q = Σ_k φ(q) · φ(k) v_k / Σ_k φ(q) · φ(k)
///
/// Time is linear in the lengths: Σ φ(k) ⊗ v_k and Σ φ(k) are computed once for all queries or, if
/// causal, token by token. A query whose weights sum to 0, which happens with ReLU, gets 0 if
/// weights are normalised.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]
/// @param value [batch, num_kv_heads, kv_len, value_dim]; heads and strides as in linear_attention
/// @return [batch, num_heads, q_len, value_dim]. Double tensors are computed by the reference.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API Tensor<float> feature_map_attention(FloatView query, FloatView key, FloatView value,
                                             const FeatureMapOptions& options = {});
HEED_API Tensor<double> feature_map_attention(DoubleView query, DoubleView key, DoubleView value,
                                              const FeatureMapOptions& options = {});

/// The derivatives of a loss with respect to the inputs of feature_map_attention, each in the shape
/// of its input.
template <class Real>
struct FeatureMapGradients {
  Tensor<Real> query;
  Tensor<Real> key;
  Tensor<Real> value;
};

/// The gradients of feature_map_attention(query, key, value, options), given grad_out [batch,
/// num_heads, q_len, value_dim]. With S = Σ φ(k) ⊗ v over the keys that a query sees, Z = Σ φ(k),
/// and w = φ(q) · Z, or 1 where weights are not normalised:
///
///     D = Σ φ(q) ⊗ grad_out / w,   C = −Σ φ(q) (grad_out · out) / w   over the queries that see k
///     grad_q = (S · grad_out − Z (grad_out · out)) / w ∘ φ′(q)
///     grad_k = (D · v + C) ∘ φ′(k),   grad_v = Dᵀ φ(k)
///
/// C and Z are absent where weights are not normalised. A query whose weights sum to 0 gets no
/// gradient and adds none to keys and values. Time is linear in the lengths; plain loops, heads in
/// parallel.
/// @throws InvalidArgument when shapes do not fit, before anything is computed.
HEED_API FeatureMapGradients<float> feature_map_attention_backward(
    FloatView grad_out, FloatView query, FloatView key, FloatView value,
    const FeatureMapOptions& options = {});
HEED_API FeatureMapGradients<double> feature_map_attention_backward(
    DoubleView grad_out, DoubleView query, DoubleView key, DoubleView value,
    const FeatureMapOptions& options = {});

}}  // namespace heed::v0
