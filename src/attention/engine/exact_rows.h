// Rows whose scores are so large that their softmax cannot be computed in one pass.
//
// The kernels keep a row's offset m as one number in units of log 2, and an lse keeps the logarithm
// of its denominator in one number. The larger this is, the fewer fractional bits it has: at a
// magnitude of 2¹⁸ weights have errors of up to 1 %, from 2²⁵ on they are meaningless, and below
// −FLT_MAX / log2 e no offset exists. Examples are rows all of whose scores get −1e9 or the lowest
// float from a mask; their result is the mean of the values. These rows are computed again in two
// passes over the keys: the largest score of a row is a float, and the differences of the others to
// it are small and exact.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// The largest magnitude of an offset, in units of log 2: next to it, scores with which the row did
// not begin have weight 0. Below, the largest magnitude of an lse from which weights are computed.
template <class Real>
inline constexpr Real kLargestOffset = -kernels::kLowestStartOf<Real> - 128;
template <class Real>
inline constexpr Real kLargestLse = -kernels::kLowestStartOf<Real> / 2;

// True if weights cannot be computed from this lse.
template <class Real>
bool is_lost_lse(Real lse) {
  return std::abs(lse) > kLargestLse<Real> && std::abs(lse) < kInfinity<Real>;
}

// Computes these rows, at most a panel of one key head, and writes their results.
template <class Real>
void compute_exactly(const ForwardCall<Real>& job, std::int64_t batch,
                     const Schedule<Real>& schedule, std::span<const RowIndex> rows);

}}}  // namespace heed::v0::engine
