// One rank's view of attention whose tokens are divided among ranks, and the work for each segment.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/plan/plan.h"
#include "attention/request/call.h"
#include "attention/request/request.h"
#include "distributed/choice.h"
#include "heed/core/cancellation.h"
#include "heed/distributed/attention.h"
#include "heed/distributed/communicator.h"

namespace heed { inline namespace v0 { namespace distributed {

// The tensors of this rank, [batch, heads, its tokens, dim], and the part of `request` that it
// computes: some queries or some heads of all, and all keys.
template <class Real>
struct SharedProblem {
  Communicator& ranks;
  DividedBy divided_by;  // kTokens or kHeads
  Request<Real> request;
  TokenDivision queries;
  TokenDivision keys;
  Rows query;
  Rows key;
  Rows value;
  Readers readers;
  Cancellation* cancellation;  // for the computation; messages are not cancelled

  std::int64_t batch() const { return request.shape.batch; }
  std::int64_t num_own_queries() const { return queries.num_tokens(ranks.rank()); }
  std::int64_t num_own_keys() const { return keys.num_tokens(ranks.rank()); }
  // The request restricted to some of the keys.
  Request<Real> with_keys(RowRange some) const {
    Request<Real> part = request;
    part.part->keys = some;
    return part;
  }
  RowRange all_keys() const { return {0, keys.length()}; }
};

// Checks all arguments on all ranks, which then throw the same InvalidArgument, and finds the
// readers of each segment. All ranks call it without a cancellation of their own.
template <class Q, class K>
SharedProblem<Computed<Q>> share_problem(const char* function, const Ranks& ranks,
                                         TensorView<const Q> query, TensorView<const K> key,
                                         TensorView<const K> value,
                                         const BasicAttentionOptions<Computed<Q>>& options,
                                         Cancellation* cancellation);

// Prepares the problem for this rank's queries and at most `num_keys` keys
// at a time. Throws InvalidArgument if no vector kernel can compute it.
template <class Real>
PreparedPass<Real> prepare_for(const SharedProblem<Real>& problem, Pass pass,
                               std::int64_t num_keys);

// Returns, for each segment of keys, the number of pairs of a query in the request's part and a
// key, over all heads and batch entries. A tile counts in full if some of the adjacent queries may
// see one of its keys. 0 means that no key of the segment is read.
template <class Real>
std::vector<double> pairs_by_segment(const Request<Real>& request);

}}}  // namespace heed::v0::distributed
