// The forward pass by tiles: memory linear in the lengths, hidden tiles never read.
#pragma once

#include <cstddef>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"

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

}}}  // namespace heed::v0::engine
