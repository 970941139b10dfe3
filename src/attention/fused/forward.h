// Attention by tiles: memory linear in the lengths, hidden tiles never touched.
#pragma once

#include "attention/kernels/kernels.h"
#include "attention/problem.h"
#include "heed/tensor.h"

namespace heed::inline v0::fused {

// out [batch, num_heads, q_len, value_dim] and, unless empty, lse [batch, num_heads, q_len] of a
// checked problem, by the kernels of one instruction set. A row's bits depend on nothing but the
// row, its options and the instruction set.
void forward(const Problem<float>& problem, const kernels::KernelTable& table,
             TensorView<float> out, TensorView<float> lse);

}  // namespace heed::inline v0::fused
