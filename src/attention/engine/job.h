// One attention problem with its tensors, and the rows of it that are computed together.
#pragma once

#include <cstdint>
#include <limits>

#include "attention/engine/row_states.h"
#include "attention/keys/key_source.h"
#include "attention/request.h"
#include "attention/rows.h"
#include "heed/tensor.h"

namespace heed::inline v0::engine {

template <class Real>
inline constexpr Real kInfinity = std::numeric_limits<Real>::infinity();

template <class Real>
struct Job {
  const Request<Real>* request = nullptr;
  Rows query;
  const KeySource<Real>* keys = nullptr;
  MutableRows out;
  TensorView<Real> lse;      // empty when not wanted
  TensorView<Real> lse_low;  // the same
  RowRange batches;          // the batch entries to compute
  Continuation<Real> continuation;
  MutableRows out_low;   // what out lacks, in its type; none when not wanted
  Real* kept = nullptr;  // kept_size() numbers, for the weights; null when not wanted
};

// Rows of one key head of one batch entry that are computed together. Row r of these is query
// first_query + r / group · query_step of head kv_head · group + r % group, where group is the
// number of heads that share the key head: neighbours see almost the same keys.
struct RowBlock {
  std::int64_t batch = 0;
  std::int64_t kv_head = 0;
  RowRange rows;
  std::int64_t first_query = 0;
  std::int64_t query_step = 1;
};

// A row within one batch entry.
struct RowIndex {
  std::int32_t head;
  std::int32_t query;  // index within the call
};

}  // namespace heed::inline v0::engine
