// The gradients of attention by tiles: memory linear in the lengths, hidden tiles never touched.
#pragma once

#include <span>

#include "attention/fused/backward_job.h"
#include "attention/kernels/kernels.h"

namespace heed::inline v0::fused {

struct BackwardTensors {
  FloatView grad_out;
  FloatView query;
  FloatView key;
  FloatView value;
  FloatView out;  // of the forward pass, as is lse
  FloatView lse;
};

// `threads` may be used.
Schedule make_backward_schedule(const kernels::KernelTable& table, const Terms<float>& terms,
                                const AttentionShapes& shapes, int threads);

// The gradients of some batch entries of tensors that were checked, still without targets. The
// terms must live as long as the job.
BackwardJob make_backward_job(const BackwardTensors& tensors, const Terms<float>& terms,
                              RowRange batches);

// Computes all jobs, whose options are the same, on the schedule of the largest. What they write
// must not overlap. No bit depends on schedule.workers, on the other jobs, or on how much larger
// the largest is.
void backward(std::span<const BackwardJob> jobs, const Schedule& schedule);

// The gradients of tensors that were checked. `bias_shape` is that of the bias before it was
// broadcast, or null.
AttentionGradients<float> backward(const Schedule& schedule, const BackwardTensors& tensors,
                                   const Terms<float>& terms, const Shape* bias_shape);

}  // namespace heed::inline v0::fused
