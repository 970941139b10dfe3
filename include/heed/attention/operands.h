// What functions of query, key and value say, at compile time, to operands that none of them takes:
// one sentence, where compilers would list all overloads.
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

// The type of the options that go with such a query.
template <TensorLike Query>
using RealOf = std::conditional_t<std::same_as<ElementOf<Query>, double>, double, float>;

// Has a gradient, as variables have.
template <class T>
concept Recorded = requires(const T& object) {
  object.requires_grad();
};

template <class First, class... Others>
inline constexpr bool kOneType = AttentionElement<ElementOf<First>> &&
                                 !(Recorded<First> || ... || Recorded<Others>)&&(
                                     std::same_as<ElementOf<First>, ElementOf<Others>> && ...);

// What attention() takes: tensors of one type, or keys and values in half precision for queries in
// float.
template <class Query, class Key, class Value>
inline constexpr bool kAreOperands = kOneType<Query, Key, Value> ||
                                     (kOneType<Key, Value> && Half<ElementOf<Key>> &&
                                      std::same_as<ElementOf<Query>, float>);

template <class... T>
concept TensorsLike = (TensorLike<T> && ...);

// Three tensors that are no operands, or are none of these options.
template <class Real, class Query, class Key, class Value>
concept Misfit = TensorsLike<Query, Key, Value> &&
    !(kAreOperands<Query, Key, Value> && std::same_as<Real, RealOf<Query>>);

// The same for backward, and for packed sequences.
template <class Real, class Grad, class Query, class Key, class Value>
concept BackwardMisfit = TensorsLike<Grad, Query, Key, Value> &&
    !(kOneType<Query, Key, Value, Grad> && std::same_as<Real, RealOf<Query>>);

template <class Query, class Key, class Value>
concept PackedMisfit = TensorsLike<Query, Key, Value> &&
    !(kOneType<Query, Key, Value> && std::same_as<RealOf<Query>, float>);

// The type of a result that is never computed: the query's, so that nothing else is complained of.
template <class Query>
using Refused = std::conditional_t<AttentionElement<ElementOf<Query>>, ElementOf<Query>, float>;

// What each function of the name says of a misfit.
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
