/// The operator: out = softmax(scale · query · keyᵀ) · value, and everything that can be said about
/// it.
///
/// Source: Vaswani et al., "Attention Is All You Need", 2017. The full contract is
/// docs/semantics.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/operands.h"
#include "heed/attention/query_offset.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/score_mod.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// Sets weights to 0 with the given probability and divides the others by 1 − probability.
///
/// Which weights is decided by Philox4x32-10, a counter-based generator addressed by (seed, batch,
/// head, query, key), so the same ones fall whatever the order of computation. The probability is
/// rounded to a multiple of 2⁻¹⁶. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
/// 3", 2011.
struct Dropout {
  float probability = 0;
  std::uint64_t seed = 0;
};

/// What half-precision tensors are multiplied in: docs/semantics.md. Source: Intel's VDPBF16PS,
/// Arm's BFDOT.
enum class Precision : std::uint8_t {
  /// In the precision they have, where the processor does so faster than in float: bfloat16 on
  /// "AVX512_BF16" and "NEON_BF16". Weights are rounded to it, and the gradients of scores; sums
  /// are float.
  kFast,
  kExact,  ///< in float, as the floats they stand for
};

namespace detail {

// What a member that is no option can be given: nothing.
struct NotCausal {
  NotCausal() = default;
  template <class T>
  NotCausal(T) {  // NOLINT(google-explicit-constructor)
    static_assert(kNever<T>, "there is no option `causal`: write .mask = heed::causal()");
  }
};

}  // namespace detail

/// What can be asked of attention. Real is the type that scores, bias and sinks are computed in:
/// float or double.
///
/// In this order: scores s = scale · query · key; softcap; score_mod; ALiBi; bias; relative_bias;
/// relative_vectors; mask; sinks; softmax; dropout.
template <class Real>
struct BasicAttentionOptions {
  // Every member has an initialiser, so that naming only some of them, `{.mask = causal()}`, draws
  // no warning.
  Mask mask = {};
  /// Not an option: `.causal = true` does not compile and says what to write.
  [[no_unique_address]] detail::NotCausal causal = {};
  ScoreMod score_mod = {};
  /// [num_heads]: score −= slope · |kv_idx − q_idx|, positions that include query_offset;
  /// alibi_slopes() in position.h makes the usual ones. Source: Press et al., "Train Short, Test
  /// Long: Attention with Linear Biases Enables Input Length Extrapolation", 2022.
  std::optional<TensorView<const Real>> alibi_slopes = std::nullopt;
  /// Added to the scores; broadcasts, aligned at the right, to [batch, num_heads, q_len, kv_len].
  std::optional<TensorView<const Real>> bias = std::nullopt;
  /// A learned number per head for how far a key stands from the query, positions that include
  /// query_offset.
  std::optional<RelativeBias<Real>> relative_bias = std::nullopt;
  /// The same with learned vectors, for keys, values or both.
  std::optional<RelativeVectors<Real>> relative_vectors = std::nullopt;
  /// [num_heads]: one more logit per head in the denominator of the softmax, without a value.
  std::optional<TensorView<const Real>> sinks = std::nullopt;
  /// 1/√head_dim when not given.
  std::optional<Real> scale = std::nullopt;
  /// s becomes softcap · tanh(s / softcap); 0 leaves s as it is.
  Real softcap = 0;
  Dropout dropout = {};
  /// The position of query 0 in the sequence, for masks, score_mod, ALiBi, relative positions and
  /// dropout: a number, or a vector of one for each batch entry. With ALiBi or relative
  /// positions and masks aligned bottom_right alone, 0 stands for the position that these say.
  QueryOffset query_offset = {};
  /// Changes nothing for tensors of float or double.
  Precision precision = Precision::kFast;
};

using AttentionOptions = BasicAttentionOptions<float>;
using AttentionOptions64 = BasicAttentionOptions<double>;

/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]
/// @param value [batch, num_kv_heads, kv_len, value_dim]
/// num_heads is a multiple of num_kv_heads; query head h reads key/value head
/// h / (num_heads / num_kv_heads). Any strides but in the innermost dimension, which is contiguous;
/// any extent may be 0.
/// @return out [batch, num_heads, q_len, value_dim]. A query that sees no key gets 0.
/// Float and double tensors are computed by the fused kernels of the processor, in memory linear in
/// the lengths and with bits that depend on nothing but the row, the options and the instruction
/// set. Float16 and BFloat16 tensors are read as the floats they stand for and computed like these;
/// only the result is rounded. Unless Precision says so, bfloat16 is multiplied as it is where the
/// processor can.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API Tensor<float> attention(FloatView query, FloatView key, FloatView value,
                                 const AttentionOptions& options = {});
HEED_API Tensor<Float16> attention(Float16View query, Float16View key, Float16View value,
                                   const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attention(BFloat16View query, BFloat16View key, BFloat16View value,
                                    const AttentionOptions& options = {});
/// Keys and values in half precision, as caches keep them, for queries in float.
HEED_API Tensor<float> attention(FloatView query, Float16View key, Float16View value,
                                 const AttentionOptions& options = {});
HEED_API Tensor<float> attention(FloatView query, BFloat16View key, BFloat16View value,
                                 const AttentionOptions& options = {});
HEED_API Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                                  const AttentionOptions64& options = {});
/// Of other operands: does not compile, and says which there are. So do the functions below.
template <class Query, class Key, class Value, class Real = detail::RealOf<Query>>
requires detail::Misfit<Real, Query, Key, Value>
auto attention(const Query&, const Key&, const Value&, const BasicAttentionOptions<Real>& = {}) {
  detail::refuse_operands<Real, Query, Key, Value>();
  return Tensor<detail::Refused<Query>>();
}

/// What attention and its normaliser are. The lse of half-precision tensors is float.
template <class T, class Lse = T>
struct AttentionOutput {
  Tensor<T> out;    ///< [batch, num_heads, q_len, value_dim]
  Tensor<Lse> lse;  ///< [batch, num_heads, q_len]: log Σ exp(score), the sink included; −infinity
                    ///< for a query that sees no key
  Tensor<Lse> lse_low = {};  ///< [batch, num_heads, q_len]: what lse lacks, rounded; 0 in rows
                             ///< where lse is infinite or NaN. Empty where it was not computed
  Tensor<T> out_low = {};    ///< [batch, num_heads, q_len, value_dim]: what out of half precision
                             ///< lacks, rounded; 0 where out is infinite or NaN. Empty where out
                             ///< lacks nothing, or it was not computed
  /// [AttentionPlan::kept_size()]: weights that attention_backward() need not compute again, in an
  /// order of its own. Only attention_for_backward() makes them; empty where none are kept.
  Tensor<Lse> kept = {};
};

/// attention(), and the logarithm of each row's denominator: what merges results over different
/// keys. An lse of magnitude m in float is off by up to m · 2⁻²⁴, and so would be all weights that
/// attention_backward computes from it, each by so much of itself: lse_low tells it the rest.
/// out_low does the same for out of half precision, where Precision is kFast.
HEED_API AttentionOutput<float> attention_with_lse(FloatView query, FloatView key, FloatView value,
                                                   const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attention_with_lse(Float16View query, Float16View key,
                                                            Float16View value,
                                                            const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attention_with_lse(BFloat16View query, BFloat16View key,
                                                             BFloat16View value,
                                                             const AttentionOptions& options = {});
HEED_API AttentionOutput<float> attention_with_lse(FloatView query, Float16View key,
                                                   Float16View value,
                                                   const AttentionOptions& options = {});
HEED_API AttentionOutput<float> attention_with_lse(FloatView query, BFloat16View key,
                                                   BFloat16View value,
                                                   const AttentionOptions& options = {});
HEED_API AttentionOutput<double> attention_with_lse(DoubleView query, DoubleView key,
                                                    DoubleView value,
                                                    const AttentionOptions64& options = {});
template <class Query, class Key, class Value, class Real = detail::RealOf<Query>>
requires detail::Misfit<Real, Query, Key, Value>
auto attention_with_lse(const Query&, const Key&, const Value&,
                        const BasicAttentionOptions<Real>& = {}) {
  detail::refuse_operands<Real, Query, Key, Value>();
  return AttentionOutput<detail::Refused<Query>>();
}

/// attention_with_lse() for attention_backward(). Of more than a few queries and at most 1024 keys,
/// with no option but sinks, scale and a mask of intervals, it keeps the weights where they take no
/// more memory than query, key, value and out, q_len · kv_len ≤ (q_len + kv_len) · (head_dim +
/// value_dim), and at most 16 MiB: the way back then has four products instead of five and no
/// exponentials. bfloat16 that is multiplied as it is keeps none.
/// @throws InvalidArgument as attention() does.
HEED_API AttentionOutput<float> attention_for_backward(FloatView query, FloatView key,
                                                       FloatView value,
                                                       const AttentionOptions& options = {});
HEED_API AttentionOutput<Float16, float> attention_for_backward(
    Float16View query, Float16View key, Float16View value, const AttentionOptions& options = {});
HEED_API AttentionOutput<BFloat16, float> attention_for_backward(
    BFloat16View query, BFloat16View key, BFloat16View value, const AttentionOptions& options = {});
HEED_API AttentionOutput<double> attention_for_backward(DoubleView query, DoubleView key,
                                                        DoubleView value,
                                                        const AttentionOptions64& options = {});
template <class Query, class Key, class Value, class Real = detail::RealOf<Query>>
requires detail::Misfit<Real, Query, Key, Value>
auto attention_for_backward(const Query&, const Key&, const Value&,
                            const BasicAttentionOptions<Real>& = {}) {
  detail::refuse_operands<Real, Query, Key, Value>();
  return AttentionOutput<detail::Refused<Query>>();
}

/// The names of what can compute attention here, the best first: kernels by their instruction set,
/// e.g. "AVX512_BF16", "AVX512_VNNI", "SSE4", or "NEON_BF16", "NEON", and at last "reference".
HEED_API std::vector<std::string> attention_targets();

/// The one in use: the first of attention_targets(), or what the environment variable HEED_TARGET
/// names when attention is first computed.
/// @throws InvalidArgument when HEED_TARGET names none of them; attention() throws it too.
HEED_API std::string attention_target();

}}  // namespace heed::v0
