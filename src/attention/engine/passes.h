// The passes of the engine over tiles of keys: memory linear in the lengths, hidden tiles never
// read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "attention/engine/backward_division.h"
#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"
#include "attention/heads/pattern_sums.h"
#include "heed/attention/statistics.h"

namespace heed { inline namespace v0 { namespace engine {

// The memory that forward() needs for a single request.
template <class Real>
std::size_t forward_bytes(const Request<Real>& request, const Schedule<Real>& schedule);

// Computes the jobs, whose shapes are that of the schedule or have smaller lengths. `workspace` is
// empty or has forward_bytes(); if it is empty, memory is allocated before anything is written. The
// bits of a row depend only on the row, its options and the instruction set.
template <class Real>
void forward(std::span<const ForwardCall<Real>> jobs, const Schedule<Real>& schedule,
             std::span<std::byte> workspace = {});

// The memory that backward() needs for a single job.
template <class Real>
std::size_t backward_bytes(const BackwardCall<Real>& job, const Schedule<Real>& schedule);

// Computes all jobs, which have the same options, on the schedule of the largest. Their outputs
// must not overlap. No bit depends on schedule.workers, on the other jobs or on the size of the
// largest. `workspace` is empty or has the memory that the jobs need.
template <class Real>
void backward(std::span<const BackwardCall<Real>> jobs, const Schedule<Real>& schedule,
              std::span<std::byte> workspace);

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

// The memory that diagnose() needs in addition to its result.
template <class Real>
std::size_t diagnostics_bytes(const Request<Real>& request, const Schedule<Real>& schedule);

// Computes the diagnostics of all heads. The schedule is for Pass::kWeights; the lengths must have
// been checked.
template <class Real>
AttentionDiagnostics diagnose(const Call<Real>& job, const Schedule<Real>& schedule,
                              const DiagnosticsOptions& lengths);

}}}  // namespace heed::v0::engine
