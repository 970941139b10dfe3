// Attention by tiles: memory linear in the lengths, hidden tiles never touched.
#pragma once

#include <cstddef>
#include <span>

#include "attention/fused/job.h"

namespace heed::inline v0::fused {

// Computes the jobs, all of the shape that was scheduled or smaller in length. `workspace` has
// schedule.workspace_bytes() or is empty; then it is allocated, before anything is written. A row's
// bits depend on nothing but the row, its options and the instruction set.
void forward(std::span<const Job> jobs, const Schedule& schedule,
             std::span<std::byte> workspace = {});

}  // namespace heed::inline v0::fused
