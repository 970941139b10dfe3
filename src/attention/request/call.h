// One attention problem with its tensors: the arguments of what a backend prepared.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <vector>

#include "attention/request/request.h"
#include "attention/request/tensor_rows.h"
#include "heed/core/tensor.h"

namespace heed { inline namespace v0 {

// The states of all rows of one batch entry. They do not depend on the panel that computed them, so
// that a panel of other rows can continue.
template <class Real>
struct RowStates {
  Real* data = nullptr;  // [num_heads][…][size_of_row], from the first query of the call on
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  // The numbers of a row: minus_m, threshold and sum, as in the state of a panel, then its output.
  static constexpr std::int64_t kOut = 3;
  static std::int64_t size_of_row(std::int64_t value_dim) { return kOut + value_dim; }

  Real* row(std::int64_t head, std::int64_t query) const {
    return data + head * head_stride + query * row_stride;
  }
};

// The part of the keys that a call reads, and the states it continues from. By default it reads all
// keys.
template <class Real>
struct Continuation {
  RowStates<Real> states;
  // The first key to read: a whole number of chunks, or kv_len. `states` has the sums over the keys
  // before it.
  std::int64_t first_key = 0;
  // True if the call leaves the states of its rows in `states` and writes no results.
  bool leaves_states = false;
  // [batch], set where a call on a part of the keys met a row of this batch entry that has to be
  // computed again from all keys. Its results are not valid then.
  std::atomic<bool>* asks_for_all_keys = nullptr;
};

template <class Real>
class KeySource;

// A request with its tensors, which may be of any floating-point type.
template <class Real>
struct Call {
  const Request<Real>* request = nullptr;
  Rows query;
  Rows key;
  Rows value;        // empty where only weights are wanted
  RowRange batches;  // the batch entries to compute
  // Unless null, keys and values come from here and there are no tensors of them; the request says
  // so in has_key_source. In the engine this is the only source of keys and values.
  const KeySource<Real>* keys = nullptr;
};

// The forward pass of one problem.
template <class Real>
struct ForwardCall : Call<Real> {
  MutableRows out;
  TensorView<Real> lse;           // empty when not wanted
  TensorView<Real> lse_low = {};  // the rounding error of lse; empty when not wanted
  MutableRows out_low = {};       // the rounding error of out, in its type; empty when not wanted
  // Only for backends whose schedule says has_plain_scores.
  Continuation<Real> continuation = {};
  Real* kept = nullptr;  // kept_size() numbers, for the weights; null when not wanted
};

// The memory of the gradients. Rows have the batch entries of the problem, and so do its tensors.
template <class Real>
struct GradientTargets {
  MutableRows query;
  MutableRows key;    // 0 before the call; for a part of the problem, the keys of the part alone
  MutableRows value;  // as key
  // The gradient of the term that has one for each score (its bias), broadcast to the scores; 0
  // before the call.
  std::optional<TensorView<Real>> cells = std::nullopt;
  // [all heads, sums_per_head()] for each term in order; null for a term without sums over heads.
  std::vector<Real*> per_head;
  Real* sinks = nullptr;  // [all heads], where there are sinks
};

// The backward pass of one problem.
template <class Real>
struct BackwardCall : Call<Real> {
  Rows grad_out;
  Rows out;  // of the forward pass, like lse
  TensorView<const Real> lse;
  GradientTargets<Real> gradients;
  TensorView<const Real> lse_low = {};  // the rounding error of lse; empty when not known
  Rows out_low = {};                    // the rounding error of out; empty when not known
  const Real* kept = nullptr;           // the weights of the forward pass; null when not known

  // True if this call sums the gradients of sinks: of several calls with a part of the keys each,
  // only the first one does.
  bool sums_sinks() const { return this->request->sinks && this->request->keys().begin == 0; }
};

// The type in which tensors of T are computed.
template <class T>
using Computed = std::conditional_t<std::is_same_v<T, double>, double, float>;

// The rows of a tensor that may be missing: empty then.
template <class T>
auto rows_or_none(const TensorView<T>& view) {
  return view.rank() == 4 ? rows_of(view) : decltype(rows_of(view)){};
}

// The data of a tensor that may be missing: null then.
template <class T>
T* data_or_null(const TensorView<T>& view) {
  return view.empty() ? nullptr : view.data();
}

// True if the backward pass reads out_low, the rounding error of an output of type T. With it the
// output has twice the digits, which is less than all that Precision::kExact asks for.
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
