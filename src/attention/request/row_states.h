// What rows have summed over their first keys, for a call that continues from there.
#pragma once

#include <atomic>
#include <cstdint>

namespace heed { inline namespace v0 {

// The states of all rows of one batch entry, each by itself: whatever panel computed it, any other
// may take it up.
template <class Real>
struct RowStates {
  Real* data = nullptr;  // [num_heads][…][size_of_row], from the first query of the call on
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  // minus_m, threshold and sum of a panel's state, then out.
  static constexpr std::int64_t kOut = 3;
  static std::int64_t size_of_row(std::int64_t value_dim) { return kOut + value_dim; }

  Real* row(std::int64_t head, std::int64_t query) const {
    return data + head * head_stride + query * row_stride;
  }
};

// A call on some of the keys. By default it is on all.
template <class Real>
struct Continuation {
  RowStates<Real> states;
  // The keys before are in `states`: whole chunks, or all that there are.
  std::int64_t first_key = 0;
  // Leaves its rows' states there, and no results.
  bool leaves_states = false;
  // [batch]: where set, a call on only some of the keys, and a row of this batch entry whose
  // result they do not give, for it has to look at every key again. Nothing right is written then.
  std::atomic<bool>* asks_for_all_keys = nullptr;
};

}}  // namespace heed::v0
