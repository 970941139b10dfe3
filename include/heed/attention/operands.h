// Compile-time checks of query, key and value. For operands that no overload takes, the compiler
// prints one sentence instead of a list of all overloads.
#pragma once

#include <concepts>
#include <type_traits>

#include "heed/core/config.h"
#include "heed/core/half.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 { namespace detail {

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

}}}  // namespace heed::v0::detail
