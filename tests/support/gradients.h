// The fused way back on each instruction set, held to the reference.
#pragma once

#include <string>

#include "attention/kernels/kernels.h"
#include "heed/attention_backward.h"
#include "support/fused.h"

namespace heed::testing_support {

// Standard normal numbers in the shape of the output.
Tensor<float> grad_out_for(const InputViews& in);

// Forward and back by one table of kernels, with so many threads, however small the problem.
AttentionGradients<float> gradients_of(const kernels::KernelTable& table, FloatView grad_out,
                                       const InputViews& in, const AttentionOptions& options,
                                       int threads = 1);

// What the reference makes of the same inputs.
struct ExpectedGradients {
  AttentionGradients<float> plain;   // in float
  AttentionGradients<double> exact;  // in double
  double largest_lse;
  double num_scores;
};
ExpectedGradients expected_gradients(FloatView grad_out, const InputViews& in,
                                     const AttentionOptions& options);

// Empty when each gradient's error, as the root of its mean square, is at most twice that of the
// plain float computation. A weight comes from an lse in float, which is off by half a unit in its
// last place: so much of the largest gradient is always allowed, and two roundings of it beside;
// of the sums over queries that most gradients are, the roundings of their terms too. Over few
// results luck is common: then a score may be off by `score_roundings` of its size too.
std::string inaccuracy(const AttentionGradients<float>& found, const ExpectedGradients& expected,
                       double score_roundings = 0);

bool same_bits(const AttentionGradients<float>& a, const AttentionGradients<float>& b);

}  // namespace heed::testing_support
