/// The attention operator, out = softmax(scale · query · keyᵀ) · value, and its options.
///
/// Source: Vaswani et al., "Attention Is All You Need", 2017. The full contract is
/// docs/semantics.md.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "heed/attention/mask.h"
#include "heed/attention/relative_position.h"
#include "heed/attention/score_mod.h"
#include "heed/core/config.h"
#include "heed/core/data_type.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// Sets weights to 0 with the given probability and divides the others by 1 − probability.
///
/// Philox4x32-10, a counter-based generator, decides for each weight from (seed, batch, head,
/// query, key), so that the same weights become 0 in any order of computation. The probability is
/// rounded to a multiple of 2⁻¹⁶. Source: Salmon et al., "Parallel Random Numbers: As Easy as 1, 2,
/// 3", 2011.
struct Dropout {
  float probability = 0;
  std::uint64_t seed = 0;
};

/// The precision in which half-precision tensors are multiplied: docs/semantics.md. Source: Intel's
/// VDPBF16PS, Arm's BFDOT.
enum class Precision : std::uint8_t {
  /// In their own precision where the processor computes it faster than float: bfloat16 on
  /// "AVX512_BF16" and "NEON_BF16". Weights and the gradients of scores are rounded to bfloat16
  /// too; sums are float.
  kFast,
  kExact,  ///< in float: every number is converted first
};

namespace detail {

// The type of the member `causal`, which is no option: no value can be assigned to it.
struct NotCausal {
  NotCausal() = default;
  template <class T>
  NotCausal(T) {  // NOLINT(google-explicit-constructor)
    static_assert(kNever<T>, "there is no option `causal`: write .mask = heed::causal()");
  }
};

}  // namespace detail

/// The options of attention. Real is the type that scores, bias and sinks are computed in: float or
/// double.
///
/// They apply in this order: scores s = scale · query · key; softcap; score_mod; ALiBi; bias;
/// relative_bias; relative_vectors; mask; sinks; softmax; dropout.
template <class Real>
struct BasicAttentionOptions {
  // Every member has an initialiser, so that `{.mask = causal()}` compiles without a warning.
  Mask mask = {};
  /// Not an option: `.causal = true` does not compile, and the error names the replacement.
  [[no_unique_address]] detail::NotCausal causal = {};
  ScoreMod score_mod = {};
  /// [num_heads]: score −= slope · |kv_idx − q_idx|. Positions include query_offset. alibi_slopes()
  /// in position.h computes the usual slopes. Source: Press et al., "Train Short, Test Long:
  /// Attention with Linear Biases Enables Input Length Extrapolation", 2022.
  std::optional<TensorView<const Real>> alibi_slopes = std::nullopt;
  /// Added to the scores; broadcasts, aligned at the right, to [batch, num_heads, q_len, kv_len].
  std::optional<TensorView<const Real>> bias = std::nullopt;
  /// A learned number per head for the distance of a key from the query. Positions include
  /// query_offset.
  std::optional<RelativeBias<Real>> relative_bias = std::nullopt;
  /// Learned vectors for the distance of a key from the query, added to keys, values or both.
  std::optional<RelativeVectors<Real>> relative_vectors = std::nullopt;
  /// [num_heads]: one more logit per head in the denominator of the softmax; it has no value.
  std::optional<TensorView<const Real>> sinks = std::nullopt;
  /// 1/√head_dim when not given.
  std::optional<Real> scale = std::nullopt;
  /// s becomes softcap · tanh(s / softcap); 0 leaves s as it is.
  Real softcap = 0;
  Dropout dropout = {};
  /// The position of query 0 in the sequence, for masks, score_mod, ALiBi, relative positions and
  /// dropout: one number, or a vector with one for each batch entry. With ALiBi or relative
  /// positions, 0 means the position that the masks' alignment gives if all of them are aligned
  /// bottom_right.
  QueryOffset query_offset = {};
  /// Has no effect on tensors of float or double.
  Precision precision = Precision::kFast;
};

/// Options of float and half-precision tensors, and of double tensors.
using AttentionOptions = BasicAttentionOptions<float>;
using AttentionOptions64 = BasicAttentionOptions<double>;

namespace detail {

// Compile-time checks of query, key and value. For operands that no overload takes, the compiler
// prints one sentence instead of a list of all overloads.

template <TensorLike T>
using ElementOf = std::remove_const_t<typename T::Element>;

template <class T>
concept Half = std::same_as<T, Float16> || std::same_as<T, BFloat16>;

template <class T>
concept AttentionElement = std::same_as<T, float> || std::same_as<T, double> || Half<T>;

// The real type of the options for this query: double for double, float otherwise.
template <TensorLike Query>
using RealOf = std::conditional_t<std::same_as<ElementOf<Query>, double>, double, float>;

// True for types with a gradient, as variables have.
template <class T>
concept Recorded = requires(const T& object) {
  object.requires_grad();
};

template <class First, class... Others>
inline constexpr bool kOneType = AttentionElement<ElementOf<First>> &&
                                 !(Recorded<First> || ... || Recorded<Others>)&&(
                                     std::same_as<ElementOf<First>, ElementOf<Others>> && ...);

// True for the operands of attention(): tensors of one type, or keys and values in half precision
// for queries in float.
template <class Query, class Key, class Value>
inline constexpr bool kAreOperands = kOneType<Query, Key, Value> ||
                                     (kOneType<Key, Value> && Half<ElementOf<Key>> &&
                                      std::same_as<ElementOf<Query>, float>);

template <class... T>
concept TensorsLike = (TensorLike<T> && ...);

// Three tensors that are no operands of attention(), or with options of another type.
template <class Real, class Query, class Key, class Value>
concept Misfit = TensorsLike<Query, Key, Value> &&
    !(kAreOperands<Query, Key, Value> && std::same_as<Real, RealOf<Query>>);

// Misfit for the backward pass; below, for packed sequences.
template <class Real, class Grad, class Query, class Key, class Value>
concept BackwardMisfit = TensorsLike<Grad, Query, Key, Value> &&
    !(kOneType<Query, Key, Value, Grad> && std::same_as<Real, RealOf<Query>>);

template <class Query, class Key, class Value>
concept PackedMisfit = TensorsLike<Query, Key, Value> &&
    !(kOneType<Query, Key, Value> && std::same_as<RealOf<Query>, float>);

// The type of a result that is never computed: the query's, so that no other error is printed.
template <class Query>
using Refused = std::conditional_t<AttentionElement<ElementOf<Query>>, ElementOf<Query>, float>;

// The error that every function prints for a misfit.
template <class Real, class Query, class Key, class Value>
constexpr void refuse_operands() {
  constexpr bool kRecorded = Recorded<Query> || Recorded<Key> || Recorded<Value>;
  constexpr bool kNumbers = AttentionElement<ElementOf<Query>> &&
                            AttentionElement<ElementOf<Key>> && AttentionElement<ElementOf<Value>>;
  static_assert(!kRecorded,
                "of variables write heed::nn::scaled_dot_product_attention, of their numbers "
                "variable.value()");
  static_assert(kRecorded || kNumbers,
                "query, key and value are float, double, Float16 or BFloat16: write "
                "heed::converted<float>(view)");
  static_assert(kRecorded || !kNumbers || !std::same_as<Real, RealOf<Query>>,
                "query, key and value are of one type, but key and value may be Float16 or "
                "BFloat16 where the query is float: write heed::converted<float>(view)");
  static_assert(kRecorded || !kNumbers || std::same_as<Real, RealOf<Query>>,
                "options of double tensors are AttentionOptions64, of others AttentionOptions");
}

}  // namespace detail

/// out = softmax(scale · query · keyᵀ) · value, with the options applied.
/// @param query [batch, num_heads, q_len, head_dim]
/// @param key [batch, num_kv_heads, kv_len, head_dim]
/// @param value [batch, num_kv_heads, kv_len, value_dim]
/// num_heads is a multiple of num_kv_heads; query head h reads key/value head h / (num_heads /
/// num_kv_heads). The innermost dimension is contiguous; the others have any strides. Any extent
/// may be 0.
/// @return out [batch, num_heads, q_len, value_dim]. A query that sees no key gets 0.
/// Float and double tensors are computed by the fused kernels of the processor, in memory linear in
/// the lengths. The bits of a row depend on its inputs, the options and attention_bits() alone.
/// Float16 and BFloat16 tensors are converted to float and computed in the same way; only the
/// result is rounded. With Precision::kFast, bfloat16 is multiplied without conversion where the
/// processor can.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API Tensor<float> attention(FloatView query, FloatView key, FloatView value,
                                 const AttentionOptions& options = {});
HEED_API Tensor<Float16> attention(Float16View query, Float16View key, Float16View value,
                                   const AttentionOptions& options = {});
HEED_API Tensor<BFloat16> attention(BFloat16View query, BFloat16View key, BFloat16View value,
                                    const AttentionOptions& options = {});
/// attention() of queries in float with keys and values in half precision, as caches keep them.
HEED_API Tensor<float> attention(FloatView query, Float16View key, Float16View value,
                                 const AttentionOptions& options = {});
HEED_API Tensor<float> attention(FloatView query, BFloat16View key, BFloat16View value,
                                 const AttentionOptions& options = {});
HEED_API Tensor<double> attention(DoubleView query, DoubleView key, DoubleView value,
                                  const AttentionOptions64& options = {});
/// attention() of any other operand types: does not compile; the error lists the types that do. The
/// functions below have this overload too.
template <class Query, class Key, class Value, class Real = detail::RealOf<Query>>
requires detail::Misfit<Real, Query, Key, Value>
auto attention(const Query&, const Key&, const Value&, const BasicAttentionOptions<Real>& = {}) {
  detail::refuse_operands<Real, Query, Key, Value>();
  return Tensor<detail::Refused<Query>>();
}

/// The results of attention and of its softmax. The lse of half-precision tensors is float.
template <class T, class Lse = T>
struct AttentionOutput {
  Tensor<T> out;    ///< [batch, num_heads, q_len, value_dim]
  Tensor<Lse> lse;  ///< [batch, num_heads, q_len]: log Σ exp(score), the sink included; −infinity
                    ///< for a query that sees no key
  /// [batch, num_heads, q_len]: the rounding error of lse, rounded; 0 in rows where lse is infinite
  /// or NaN. Empty where it was not computed.
  Tensor<Lse> lse_low = {};
  /// [batch, num_heads, q_len, value_dim]: the rounding error of out in half precision, rounded; 0
  /// where out is infinite or NaN. Empty for float and double, and where it was not computed.
  Tensor<T> out_low = {};
  /// [AttentionPlan::kept_size()]: weights that attention_backward() then does not compute again,
  /// in an internal order. Only attention_for_backward() keeps them; otherwise empty.
  Tensor<Lse> kept = {};
};

/// attention(), and the logarithm of each row's denominator, by which results over different keys
/// are merged. A float lse of magnitude m has a rounding error of up to m · 2⁻²⁴, and all weights
/// that attention_backward() computes from it have the same relative error: lse_low corrects it.
/// out_low corrects out in half precision in the same way, where Precision is kFast.
/// @throws InvalidArgument as attention() does.
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

/// attention_with_lse() for attention_backward(). It also keeps the weights when there are more
/// than a few queries and at most 1024 keys, the only options are sinks, scale and a mask of
/// intervals, and the weights take no more memory than query, key, value and out, q_len · kv_len ≤
/// (q_len + kv_len) · (head_dim + value_dim), and at most 16 MiB. The backward pass then computes
/// four products instead of five, and no exponentials. It keeps none for bfloat16 that is
/// multiplied without conversion.
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

/// The names of the implementations that this processor can run, the fastest first: kernels by
/// their instruction set, e.g. "AVX512_BF16", "AVX512_VNNI", "SSE4", or "NEON_BF16", "NEON", and
/// last "reference".
HEED_API std::vector<std::string> attention_targets();

/// The implementation in use: the first of attention_targets(), or the one that the environment
/// variable HEED_TARGET names when attention is first computed.
/// @throws InvalidArgument when HEED_TARGET is none of them; attention() throws it too.
HEED_API std::string attention_target();

/// The arithmetic whose bits attention_target() computes: processors that give the same answer give
/// the same bits. "exact" is that of all instruction sets with fused multiply-adds, AVX-512, AVX2
/// and NEON; "SSE4" and "reference" have bits of their own, as have the products of bfloat16 of
/// "AMX_BF16", "AVX512_BF16" and "NEON_BF16", which Precision::kFast asks for. docs/semantics.md
/// says what the promise covers.
/// @throws InvalidArgument as attention_target() does.
HEED_API std::string attention_bits(Precision precision = Precision::kExact);

}}  // namespace heed::v0
