// One attention problem with its tensors: what callers of a backend make, and what it computes.
#pragma once

#include <optional>
#include <type_traits>
#include <vector>

#include "attention/request/request.h"
#include "attention/request/row_states.h"
#include "attention/request/tensor_rows.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

template <class Real>
class KeySource;

// A request with its tensors, of any types of float.
template <class Real>
struct Call {
  const Request<Real>* request = nullptr;
  Rows query;
  Rows key;
  Rows value;        // none where only weights are asked for
  RowRange batches;  // the batch entries to compute
  // Unless null, this has the keys and values, and the request says so; there are no tensors then.
  // The engine reads keys and values here alone.
  const KeySource<Real>* keys = nullptr;
};

// The forward pass of one problem.
template <class Real>
struct ForwardCall : Call<Real> {
  MutableRows out;
  TensorView<Real> lse;           // empty when not wanted
  TensorView<Real> lse_low = {};  // the rounding error of lse; empty when not wanted
  MutableRows out_low = {};       // that of out, in its type; none when not wanted
  // For backends whose schedule says has_plain_scores.
  Continuation<Real> continuation = {};
  Real* kept = nullptr;  // kept_size() numbers, for the weights; null when not wanted
};

// Where gradients are written: rows that have the batch entries of the problem, as do its tensors.
template <class Real>
struct GradientTargets {
  MutableRows query;
  MutableRows key;    // 0 before; of a part, its keys alone
  MutableRows value;  // the same
  // Of the term that sums cells, broadcast to the scores, 0 before.
  std::optional<TensorView<Real>> cells = std::nullopt;
  // [all heads, sums_per_head()], for each term in order; null for a term that has no such sums.
  std::vector<Real*> per_head;
  Real* sinks = nullptr;  // [all heads], where there are sinks
};

// The backward pass of one problem.
template <class Real>
struct BackwardCall : Call<Real> {
  Rows grad_out;
  Rows out;  // of the forward pass, as is lse
  TensorView<const Real> lse;
  GradientTargets<Real> gradients;
  TensorView<const Real> lse_low = {};  // the rounding error of lse; empty when not known
  Rows out_low = {};                    // that of out; none when there is none, or not known
  const Real* kept = nullptr;           // the weights of the forward pass; null when not known

  // Of several calls that have a part of the keys each, the first one sums the gradients of sinks.
  bool sums_sinks() const { return this->request->sinks && this->request->keys().begin == 0; }
};

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

}}  // namespace heed::v0
