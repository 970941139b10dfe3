// The gradients of attention by tiles: memory linear in the lengths, hidden tiles never touched.
#pragma once

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

// The gradients of tensors that were checked. `bias_shape` is that of the bias before it was
// broadcast, or null. No bit depends on schedule.workers.
AttentionGradients<float> backward(const Schedule& schedule, const BackwardTensors& tensors,
                                   const Terms<float>& terms, const Shape* bias_shape);

}  // namespace heed::inline v0::fused
