// The sums of rows over their first keys, from which a later call continues.
#pragma once

#include <atomic>
#include <cstdint>

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

}}  // namespace heed::v0
