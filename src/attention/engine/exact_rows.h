// Rows whose scores are so large that their softmax cannot be taken in one pass.
//
// The kernels keep a row's offset m as one number, in units of log 2, and so does an lse keep the
// logarithm of its denominator. The larger it is the fewer bits are left behind the point: at a
// magnitude of 2¹⁸ weights are wrong by up to 1 %, from 2²⁵ on they mean nothing, and below
// −FLT_MAX / log2 e there is no offset. Such are the rows of which a mask of −1e9 or of the lowest
// float leaves nothing: their result is the mean of the values. These rows are computed again, in
// two passes over the keys: the largest score of a row is a float as it is, and what remains of the
// others when it is subtracted is small and exact.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// The largest magnitude of an offset, in units of log 2: scores that a row did not begin with weigh
// nothing next to it. And that of an lse that weights are computed from.
template <class Real>
inline constexpr Real kLargestOffset = -kernels::kLowestStartOf<Real> - 128;
template <class Real>
inline constexpr Real kLargestLse = -kernels::kLowestStartOf<Real> / 2;

// Whether weights cannot be told from an lse.
template <class Real>
bool is_lost_lse(Real lse) {
  return std::abs(lse) > kLargestLse<Real> && std::abs(lse) < kInfinity<Real>;
}

// Computes these rows, at most a panel full of one key head, and writes their results.
template <class Real>
void compute_exactly(const ForwardCall<Real>& job, std::int64_t batch,
                     const Schedule<Real>& schedule, std::span<const RowIndex> rows);

}}}  // namespace heed::v0::engine
