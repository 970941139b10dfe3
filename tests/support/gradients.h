// The fused backward pass on each instruction set, held to the reference.
#pragma once

#include <string>

#include "attention/kernels/kernels.h"
#include "heed/attention/backward.h"
#include "support/fused.h"

namespace heed::testing_support {

// Standard normal numbers in the shape of the output.
Tensor<float> grad_out_for(const InputViews& in);

// Forward and back by one table of kernels, with so many threads, however small the problem.
AttentionGradients<float> gradients_of(const kernels::KernelTable& table, FloatView grad_out,
                                       const InputViews& in, const AttentionOptions& options,
                                       int threads = 1);

// The way back alone, of what the same table made on the way forward.
AttentionGradients<float> gradients_from(const AttentionOutput<float>& forward,
                                         const kernels::KernelTable& table, FloatView grad_out,
                                         const InputViews& in, const AttentionOptions& options,
                                         int threads = 1);

// What the reference makes of the same inputs.
struct ExpectedGradients {
  AttentionGradients<float> plain;   // in float
  AttentionGradients<double> exact;  // in double
  double largest_lse;
  double num_scores;
  // How large grad_out · value is, of standard normal numbers, and what that becomes in a gradient:
  // the terms that cancel where a gradient is small.
  double term_of_query;
  double term_of_key;
  double term;
  double longest;  // distance of a query and a key
};
ExpectedGradients expected_gradients(FloatView grad_out, const InputViews& in,
                                     const AttentionOptions& options);

// Empty when each gradient's error, as the root of its mean square, is at most twice that of the
// plain float computation, which may be lucky. So always allowed are: two roundings of the largest
// gradient, and what it changes by when every weight does by as much as an lse in float is off; and
// the roundings of terms that cancel. Over few results luck is common: then a score may be off by
// `score_roundings` of its size too, and the terms that cancel by as much.
std::string inaccuracy(const AttentionGradients<float>& found, const ExpectedGradients& expected,
                       double score_roundings = 0);

bool same_bits(const AttentionGradients<float>& a, const AttentionGradients<float>& b);

}  // namespace heed::testing_support
