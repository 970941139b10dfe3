/// The backward pass of attention: the gradients of its inputs.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "heed/attention.h"
#include "heed/core/config.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

/// A member for each tensor of the options that can be learned: its gradient, or a layer's
/// variable.
template <class Each>
struct LearnedMembers {
  Each alibi_slopes = {};   ///< [num_heads]
  Each bias = {};           ///< broadcasts to [batch, num_heads, q_len, kv_len]
  Each sinks = {};          ///< [num_heads]
  Each relative_bias = {};  ///< the table of the option relative_bias
  Each relative_key = {};   ///< the tables of the option relative_vectors
  Each relative_value = {};

  /// All of them, in the order of kLearnable.
  static constexpr std::array kAll{&LearnedMembers::alibi_slopes, &LearnedMembers::bias,
                                   &LearnedMembers::sinks,        &LearnedMembers::relative_bias,
                                   &LearnedMembers::relative_key, &LearnedMembers::relative_value};
};

/// The derivatives of a loss with respect to the tensors in the options, each in the shape of its
/// tensor; empty for an option that is not set.
template <class Sum>
using OptionGradients = LearnedMembers<Tensor<Sum>>;

/// A tensor of the options that can be learned: where its gradient goes, and how options hold it.
/// The table kLearnable has all of them; layers, ranks and bindings go over it.
template <class Real>
struct Learnable {
  using View = TensorView<const Real>;
  using Options = BasicAttentionOptions<Real>;

  const char* name;    ///< of the member of LearnedMembers
  const char* option;  ///< the option that holds it
  Tensor<Real> OptionGradients<Real>::*gradient;
  std::optional<View> (*get)(const Options&);  ///< empty where it is not set
  void (*set)(Options&, View);                 ///< requires is_option_set()
  bool (*is_option_set)(const Options&);       ///< of options that say more than the tensor
};

template <class Real>
inline constexpr std::array<Learnable<Real>, LearnedMembers<Tensor<Real>>::kAll.size()> kLearnable{{
    {"alibi_slopes", "alibi_slopes", &OptionGradients<Real>::alibi_slopes,
     [](const auto& options) { return options.alibi_slopes; },
     [](auto& options, auto view) { options.alibi_slopes = view; },
     [](const auto& /*options*/) { return true; }},
    {"bias", "bias", &OptionGradients<Real>::bias, [](const auto& options) { return options.bias; },
     [](auto& options, auto view) { options.bias = view; },
     [](const auto& /*options*/) { return true; }},
    {"sinks", "sinks", &OptionGradients<Real>::sinks,
     [](const auto& options) { return options.sinks; },
     [](auto& options, auto view) { options.sinks = view; },
     [](const auto& /*options*/) { return true; }},
    {"relative_bias", "relative_bias", &OptionGradients<Real>::relative_bias,
     [](const auto& options) {
       const auto& bias = options.relative_bias;
       return bias ? std::optional(TensorView<const Real>(bias->table)) : std::nullopt;
     },
     [](auto& options, auto view) { options.relative_bias->table = view; },
     [](const auto& options) { return options.relative_bias.has_value(); }},
    {"relative_key", "relative_vectors", &OptionGradients<Real>::relative_key,
     [](const auto& options) {
       const auto& vectors = options.relative_vectors;
       return vectors ? vectors->key : std::nullopt;
     },
     [](auto& options, auto view) { options.relative_vectors->key = view; },
     [](const auto& options) { return options.relative_vectors.has_value(); }},
    {"relative_value", "relative_vectors", &OptionGradients<Real>::relative_value,
     [](const auto& options) {
       const auto& vectors = options.relative_vectors;
       return vectors ? vectors->value : std::nullopt;
     },
     [](auto& options, auto view) { options.relative_vectors->value = view; },
     [](const auto& options) { return options.relative_vectors.has_value(); }},
}};

static_assert([] {
  for (std::size_t i = 0; i < kLearnable<float>.size(); ++i) {
    if (kLearnable<float>[i].gradient != OptionGradients<float>::kAll[i]) return false;
  }
  return true;
}());

/// Zeros in the shapes of the tensors in these options, into which gradients are summed.
template <class Sum>
OptionGradients<Sum> zero_gradients(const BasicAttentionOptions<Sum>& options) {
  OptionGradients<Sum> gradients;
  for (const Learnable<Sum>& term : kLearnable<Sum>) {
    if (const auto view = term.get(options)) gradients.*term.gradient = Tensor<Sum>(view->shape());
  }
  return gradients;
}

/// The derivatives of a loss with respect to all inputs of attention, each in the shape of its
/// input. Those of the options are sums, which are float for half-precision tensors.
template <class T, class Sum = T>
struct AttentionGradients : OptionGradients<Sum> {
  Tensor<T> query;
  Tensor<T> key;
  Tensor<T> value;
};

/// Views of the results of attention_with_lse() or attention_for_backward().
template <class T, class Lse = T>
struct AttentionOutputView {
  TensorView<const T> out;    ///< [batch, num_heads, q_len, value_dim]
  TensorView<const Lse> lse;  ///< [batch, num_heads, q_len]
  /// [batch, num_heads, q_len], the rounding error of lse; taken for 0 where empty.
  TensorView<const Lse> lse_low;
  /// [batch, num_heads, q_len, value_dim], the rounding error of out in half precision; may be
  /// empty.
  TensorView<const T> out_low;
  /// Of one dimension, contiguous: the weights that attention_for_backward() kept; may be empty.
  TensorView<const Lse> kept;

  AttentionOutputView(TensorView<const T> o, TensorView<const Lse> l,
                      TensorView<const Lse> low = {}, TensorView<const T> o_low = {},
                      TensorView<const Lse> k = {})
      : out(o), lse(l), lse_low(low), out_low(o_low), kept(k) {}
  // NOLINTNEXTLINE(google-explicit-constructor)
  AttentionOutputView(const AttentionOutput<T, Lse>& output HEED_LIFETIME_BOUND)
      : out(output.out),
        lse(output.lse),
        lse_low(output.lse_low),
        out_low(output.out_low),
        kept(output.kept) {}
};

/// The gradients of attention(query, key, value, options).
///
/// @param grad_out [batch, num_heads, q_len, value_dim], the derivative of the loss with respect to
/// out; the innermost dimension is contiguous, the others have any strides
/// @param forward the result of attention_with_lse() or attention_for_backward() for the same
/// tensors and options, on the same instruction set
///
/// With dropout m (0, or 1 / (1 − probability)) and weights w = exp(score − lse) computed again:
///
///     grad_value  = (w ∘ m)ᵀ · grad_out
///     grad_masked = w ∘ (m ∘ (grad_out · valueᵀ) − Σ_d grad_out ∘ out)
///     grad_query  = scale · grad_score · key,   grad_key = scale · grad_scoreᵀ · query
///
/// where grad_score is grad_masked times the derivative of score_mod and softcap. The gradient of
/// the bias is grad_masked, summed over the dimensions in which the bias is repeated; that of an
/// ALiBi slope is −Σ grad_masked · |kv_idx − q_idx| over its head; that of a sink is −Σ exp(sink −
/// lse) · grad_out · out over the rows of its head; that of an entry of relative_bias is Σ
/// grad_masked over the distances of that entry. An entry of relative_vectors gets the sum of the
/// gradients of the keys, or of the values, at its distances, and value_table adds to grad_masked
/// as values do.
///
/// Keys that a query does not see have no effect on it, get no gradient from it and may hold NaN; a
/// query that sees no key gets 0. Variables that score_mod and masks capture receive no gradient.
///
/// Computed by the fused kernels of the processor, in memory linear in the lengths, with the same
/// bits for any number of threads. Half-precision tensors are converted to float, sums are floats,
/// and only the gradients are rounded. The rounding error of out would cost the gradients most of
/// their digits: out + out_low is read, and where there is no out_low, or with Precision::kExact,
/// out is computed again, which takes the time of a forward pass. Where bfloat16 is multiplied
/// without conversion, weights and scale · grad_score are rounded too. Source: Dao et al.,
/// "FlashAttention", 2022, section 3.1.
/// @throws InvalidArgument when shapes or options do not fit, before anything is computed.
HEED_API AttentionGradients<float> attention_backward(FloatView grad_out, FloatView query,
                                                      FloatView key, FloatView value,
                                                      const AttentionOutputView<float>& forward,
                                                      const AttentionOptions& options = {});
HEED_API AttentionGradients<Float16, float> attention_backward(
    Float16View grad_out, Float16View query, Float16View key, Float16View value,
    const AttentionOutputView<Float16, float>& forward, const AttentionOptions& options = {});
HEED_API AttentionGradients<BFloat16, float> attention_backward(
    BFloat16View grad_out, BFloat16View query, BFloat16View key, BFloat16View value,
    const AttentionOutputView<BFloat16, float>& forward, const AttentionOptions& options = {});
HEED_API AttentionGradients<double> attention_backward(DoubleView grad_out, DoubleView query,
                                                       DoubleView key, DoubleView value,
                                                       const AttentionOutputView<double>& forward,
                                                       const AttentionOptions64& options = {});
/// attention_backward() of any other operand types: does not compile; the error lists the types
/// that do.
template <class Grad, class Query, class Key, class Value, class Forward,
          class Real = detail::RealOf<Query>>
requires detail::BackwardMisfit<Real, Grad, Query, Key, Value>
auto attention_backward(const Grad&, const Query&, const Key&, const Value&, const Forward&,
                        const BasicAttentionOptions<Real>& = {}) {
  constexpr bool kFits = detail::kOneType<Query, Key, Value, Grad>;
  static_assert(kFits,
                "grad_out, query, key and value are of one type, float, double, Float16 or "
                "BFloat16: write heed::converted<float>(view)");
  static_assert(!kFits || std::same_as<Real, detail::RealOf<Query>>,
                "options of double tensors are AttentionOptions64, of others AttentionOptions");
  return AttentionGradients<detail::Refused<Query>>();
}

}}  // namespace heed::v0
