// Weights of chosen rows, and statistics of all rows, tile by tile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace engine {

// Only query and keys of a job are used. The schedule is for Pass::kWeights.

// The memory that weights_of_rows() needs in addition to its result.
template <class Real>
std::size_t weights_bytes(const Schedule<Real>& schedule);

// Sets weights[i][k], [rows, kv_len], to the weight of key k in rows[i]. It must be 0 before.
template <class Real>
void weights_of_rows(const Call<Real>& job, const Schedule<Real>& schedule,
                     std::span<const AttentionRow> rows, TensorView<Real> weights);

// The memory that statistics_of() needs in addition to its result.
template <class Real>
std::size_t statistics_bytes(const Request<Real>& request, const Schedule<Real>& schedule,
                             std::int64_t top_k);

// Writes all members of `statistics`, made by make_statistics().
template <class Real>
void statistics_of(const Call<Real>& job, const Schedule<Real>& schedule,
                   BasicAttentionStatistics<Real>& statistics);

}}}  // namespace heed::v0::engine
