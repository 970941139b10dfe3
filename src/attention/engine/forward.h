// Attention by tiles: memory linear in the lengths, hidden tiles never touched.
#pragma once

#include <cstddef>
#include <span>

#include "attention/engine/row_block.h"
#include "attention/engine/schedule.h"

namespace heed { inline namespace v0 { namespace engine {

// Memory that forward() needs for a request that is computed alone.
template <class Real>
std::size_t forward_bytes(const Request<Real>& request, const Schedule<Real>& schedule);

// Computes the jobs, all of the shape that was scheduled or smaller in length. `workspace` is empty
// or has what forward_bytes() says; without one, memory is allocated before anything is written. A
// row's bits depend on nothing but the row, its options and the instruction set.
template <class Real>
void forward(std::span<const ForwardCall<Real>> jobs, const Schedule<Real>& schedule,
             std::span<std::byte> workspace = {});

}}}  // namespace heed::v0::engine
