// The fused path on each instruction set, compared with the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "heed/attention.h"
#include "heed/attention/plan.h"
#include "heed/core/tensor.h"
#include "support/kernel_tables.h"
#include "support/options.h"

namespace heed::testing_support {

template <class T>
struct BasicInputViews {
  TensorView<const T> query;
  TensorView<const T> key;
  TensorView<const T> value;
};
using InputViews = BasicInputViews<float>;

// Standard normal numbers, the queries times `magnitude`, which is the standard deviation of a
// score at the default scale.
struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;

  explicit Inputs(const Sizes& sizes, float magnitude = 1);

  // NOLINTNEXTLINE(google-explicit-constructor): as a tensor is passed as a view
  operator InputViews() const { return {query, key, value}; }
};

// Runs the fused path with one table of kernels and its checks. T is float, Float16 or BFloat16.
template <class T>
void run_into(const kernels::KernelTable& table, const BasicInputViews<T>& in,
              const AttentionOptions& options, const AttentionBuffers<T>& buffers);
AttentionOutput<float> run(const kernels::KernelTable& table, const InputViews& in,
                           const AttentionOptions& options);
// Runs it and keeps the weights where they may be kept.
AttentionOutput<float> run_for_backward(const kernels::KernelTable& table, const InputViews& in,
                                        const AttentionOptions& options);
// Runs it with panels of rows distributed singly over `threads` threads, even for small problems.
AttentionOutput<float> run_on_threads(int threads, const kernels::KernelTable& table,
                                      const InputViews& in, const AttentionOptions& options);

// The reference's results for the same inputs.
struct Expected {
  AttentionOutput<float> plain;   // in float
  AttentionOutput<double> exact;  // in double
};
Expected expected_of(const InputViews& in, const AttentionOptions& options);

// Returns an empty text if the root mean square error is at most twice that of the plain float
// computation. Two roundings of the largest result are always allowed, because the plain
// computation may be lucky. Otherwise returns both errors. Over few results luck is common: then a
// score may also be off by `score_roundings` of its size, an lse by the same, and a weight by as
// many of itself.
std::string inaccuracy(const AttentionOutput<float>& found, const Expected& expected,
                       double score_roundings = 0);

void expect_accurate(const kernels::KernelTable& table, const InputViews& in,
                     const AttentionOptions& options, const std::string& what);

// A test of the kernels of one instruction set.
class TargetTest : public testing::TestWithParam<const kernels::KernelTable*> {
 protected:
  static const kernels::KernelTable& table() { return *GetParam(); }
};

#define HEED_RUN_ON_EVERY_TARGET(Suite)                                                \
  INSTANTIATE_TEST_SUITE_P(Fused, Suite,                                               \
                           ::testing::ValuesIn(testing_support::kernels_of_numbers()), \
                           [](const auto& test) { return std::string(test.param->name); })

// Runs the tests for tables that multiply quantised keys and values with other instructions.
#define HEED_RUN_ON_OTHER_INTEGERS(Suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(Quads, Suite,                                                      \
                           ::testing::ValuesIn(testing_support::kernels_of_other_integers()), \
                           [](const auto& test) { return std::string(test.param->name); })

}  // namespace heed::testing_support
