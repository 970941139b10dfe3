// The fused backward pass on each instruction set, compared with the reference.
#pragma once

#include <string>

#include "attention/kernels/kernels.h"
#include "heed/attention/backward.h"
#include "support/fused.h"

namespace heed::testing_support {

// Standard normal numbers in the shape of the output.
Tensor<float> grad_out_for(const InputViews& in);

// Runs forward and backward pass with one table of kernels on `threads` threads, even for small
// problems.
AttentionGradients<float> gradients_of(const kernels::KernelTable& table, FloatView grad_out,
                                       const InputViews& in, const AttentionOptions& options,
                                       int threads = 1);

// Runs the backward pass only, from the same table's forward result.
AttentionGradients<float> gradients_from(const AttentionOutput<float>& forward,
                                         const kernels::KernelTable& table, FloatView grad_out,
                                         const InputViews& in, const AttentionOptions& options,
                                         int threads = 1);

// The reference's gradients for the same inputs.
struct ExpectedGradients {
  AttentionGradients<float> plain;   // in float
  AttentionGradients<double> exact;  // in double
  double largest_lse;
  double num_scores;
  // The sizes of grad_out · value for standard normal numbers and of their contribution to a
  // gradient: the terms that cancel where a gradient is small.
  double term_of_query;
  double term_of_key;
  double term;
  double longest;  // the largest distance of a query and a key
};
ExpectedGradients expected_gradients(FloatView grad_out, const InputViews& in,
                                     const AttentionOptions& options);

// Returns an empty text if the root mean square error of each gradient is at most twice that of the
// plain float computation. Because that may be lucky, these are always allowed: two roundings of
// the largest gradient, the change when every weight changes by the error of a float lse, and the
// roundings of terms that cancel. Over few results luck is common: then a score may also be off by
// `score_roundings` of its size, and the terms that cancel by as much.
std::string inaccuracy(const AttentionGradients<float>& found, const ExpectedGradients& expected,
                       double score_roundings = 0);

bool same_bits(const AttentionGradients<float>& a, const AttentionGradients<float>& b);

}  // namespace heed::testing_support
