// Rows whose scores are so large that their softmax cannot be taken in one pass.
//
// The kernels keep a row's offset m as a float, in units of log 2, and so does an lse keep the
// logarithm of its denominator. The larger it is the fewer bits are left behind the point: at a
// magnitude of 2¹⁸ weights are wrong by up to 1 %, from 2²⁵ on they mean nothing, and below
// −FLT_MAX / log2 e there is no offset. Such are the rows of which a mask of −1e9 or of the lowest
// float leaves nothing: their result is the mean of the values. These rows are computed again, in
// two passes over the keys: the largest score of a row is a float as it is, and what remains of the
// others when it is subtracted is small and exact.
#pragma once

#include <cstdint>
#include <span>

#include "attention/fused/job.h"
#include "attention/fused/panel_rows.h"
#include "attention/fused/panel_weights.h"
#include "attention/fused/tile_reader.h"

namespace heed::inline v0::fused {

// The largest magnitude of an offset, in units of log 2: scores that a row did not begin with weigh
// nothing next to it. And that of an lse that weights are computed from.
inline constexpr float kLargestOffset = -kernels::kLowestStart - 128;
inline constexpr float kLargestLse = 0x1p17F;

// As `schedule`, for one panel of such rows.
Schedule make_exact_schedule(const Schedule& schedule);

// Computes these rows of the block's key head, at most a panel full, and writes their results.
void compute_exactly(const Block& block, const Schedule& schedule, std::span<const RowIndex> rows);

}  // namespace heed::inline v0::fused
