// The gradients of attention by tiles: memory linear in the lengths, hidden tiles never touched.
#pragma once

#include <cstddef>
#include <span>

#include "attention/engine/backward_division.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// Memory that backward() needs for a job that is computed alone.
template <class Real>
std::size_t backward_bytes(const BackwardCall<Real>& job, const Schedule<Real>& schedule);

// Computes all jobs, whose options are the same, on the schedule of the largest. What they write
// must not overlap. No bit depends on schedule.workers, on the other jobs, or on how much larger
// the largest is. `workspace` is empty or has what they need.
template <class Real>
void backward(std::span<const BackwardCall<Real>> jobs, const Schedule<Real>& schedule,
              std::span<std::byte> workspace);

}}}  // namespace heed::v0::engine
