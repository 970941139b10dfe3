// The backward pass by tiles: memory linear in the lengths, hidden tiles never read.
#pragma once

#include <cstddef>
#include <span>

#include "attention/engine/backward_division.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// The memory that backward() needs for a single job.
template <class Real>
std::size_t backward_bytes(const BackwardCall<Real>& job, const Schedule<Real>& schedule);

// Computes all jobs, which have the same options, on the schedule of the largest. Their outputs
// must not overlap. No bit depends on schedule.workers, on the other jobs or on the size of the
// largest. `workspace` is empty or has the memory that the jobs need.
template <class Real>
void backward(std::span<const BackwardCall<Real>> jobs, const Schedule<Real>& schedule,
              std::span<std::byte> workspace);

}}}  // namespace heed::v0::engine
