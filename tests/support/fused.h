// The fused path on each instruction set, held to the reference.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "attention/kernels/kernels.h"
#include "heed/attention.h"
#include "heed/tensor.h"

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

struct InputViews {
  FloatView query;
  FloatView key;
  FloatView value;
};

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

// The fused path by one table of kernels, with its checks and with lse.
AttentionOutput<float> run(const kernels::KernelTable& table, const InputViews& in,
                           const AttentionOptions& options);

// What the reference makes of the same inputs.
struct Expected {
  AttentionOutput<float> plain;   // in float
  AttentionOutput<double> exact;  // in double
};
Expected expected_of(const InputViews& in, const AttentionOptions& options);

// Empty when the root of the mean square of found − exact is at most twice that of the plain float
// computation, which may be lucky: two roundings of the largest result are always allowed.
// Otherwise both errors.
std::string inaccuracy(const AttentionOutput<float>& found, const Expected& expected);

void expect_accurate(const kernels::KernelTable& table, const InputViews& in,
                     const AttentionOptions& options, const std::string& what);

// A test of the kernels of one instruction set.
class TargetTest : public testing::TestWithParam<const kernels::KernelTable*> {
 protected:
  static const kernels::KernelTable& table() { return *GetParam(); }
};

#define HEED_RUN_ON_EVERY_TARGET(Suite)                                                     \
  INSTANTIATE_TEST_SUITE_P(Fused, Suite, ::testing::ValuesIn(kernels::supported_kernels()), \
                           [](const auto& test) { return std::string(test.param->name); })

}  // namespace heed::testing_support
