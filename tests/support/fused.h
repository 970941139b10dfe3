// The fused path on each instruction set, held to the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "heed/attention.h"
#include "heed/attention/plan.h"
#include "heed/core/tensor.h"
#include "support/kernel_tables.h"

namespace heed::testing_support {

struct Sizes {
  std::int64_t batch = 1;
  std::int64_t num_heads = 1;
  std::int64_t num_kv_heads = 1;
  std::int64_t q_len = 1;
  std::int64_t kv_len = 1;
  std::int64_t head_dim = 16;
  std::int64_t value_dim = 16;
};

template <class T>
struct BasicInputViews {
  TensorView<const T> query;
  TensorView<const T> key;
  TensorView<const T> value;
};
using InputViews = BasicInputViews<float>;

// Standard normal numbers; the queries times `magnitude`, which is the standard deviation of a
// score at the default scale.
struct Inputs {
  Tensor<float> query;
  Tensor<float> key;
  Tensor<float> value;

  explicit Inputs(const Sizes& sizes, float magnitude = 1);

  // NOLINTNEXTLINE(google-explicit-constructor): as a tensor is passed as a view
  operator InputViews() const { return {query, key, value}; }
};

// The fused path by one table of kernels, with its checks; T is float, Float16 or BFloat16.
template <class T>
void run_into(const kernels::KernelTable& table, const BasicInputViews<T>& in,
              const AttentionOptions& options, const AttentionBuffers<T>& buffers);
AttentionOutput<float> run(const kernels::KernelTable& table, const InputViews& in,
                           const AttentionOptions& options);
// The same with the weights kept where they may be.
AttentionOutput<float> run_for_backward(const kernels::KernelTable& table, const InputViews& in,
                                        const AttentionOptions& options);
// As run(), with panels of rows dealt out singly to so many threads, however small the problem.
AttentionOutput<float> run_on_threads(int threads, const kernels::KernelTable& table,
                                      const InputViews& in, const AttentionOptions& options);

// What the reference makes of the same inputs.
struct Expected {
  AttentionOutput<float> plain;   // in float
  AttentionOutput<double> exact;  // in double
};
Expected expected_of(const InputViews& in, const AttentionOptions& options);

// Empty when the root of the mean square of found − exact is at most twice that of the plain float
// computation, which may be lucky: two roundings of the largest result are always allowed.
// Otherwise both errors. Over few results luck is common: then a score may be off by
// `score_roundings` of its size too, which an lse is off by, and a weight by as many of itself.
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

// The same for those whose quantised keys and values are multiplied by other instructions.
#define HEED_RUN_ON_OTHER_INTEGERS(Suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(Quads, Suite,                                                      \
                           ::testing::ValuesIn(testing_support::kernels_of_other_integers()), \
                           [](const auto& test) { return std::string(test.param->name); })

}  // namespace heed::testing_support
