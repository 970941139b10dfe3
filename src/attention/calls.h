// From the tensors of a caller to calls of a backend.
#pragma once

#include <type_traits>

#include "attention/backend.h"

namespace heed::inline v0 {

// The type that tensors of T are computed in.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The rows of a tensor that may be missing.
template <class T>
auto rows_or_none(const TensorView<T>& view) {
  return view.rank() == 4 ? rows_of(view) : decltype(rows_of(view)){};
}

// The numbers of a tensor that may be missing.
template <class T>
T* data_or_null(const TensorView<T>& view) {
  return view.empty() ? nullptr : view.data();
}

// Whether the way back reads what an output of T lacks. It has twice the digits of out then, which
// is not all that Precision::kExact asks for.
template <class T>
bool reads_out_low(const Request<Computed<T>>& request) {
  return !std::is_same_v<T, Computed<T>> && request.precision == Precision::kFast;
}

// `request` must outlive the call.
template <class Q, class K>
Call<Computed<Q>> call_of(const Request<Computed<Q>>& request, TensorView<const Q> query,
                          TensorView<const K> key, TensorView<const K> value = {}) {
  return {&request, rows_of(query), rows_of(key), rows_or_none(value), {0, request.shape.batch}};
}

}  // namespace heed::inline v0
