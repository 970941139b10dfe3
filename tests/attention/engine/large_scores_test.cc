// Rows whose scores are all so large that an offset in units of log 2 loses their digits, for
// example by a mask of −1e9 or of the lowest float. Only −infinity hides.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/engine/exact_rows.h"
#include "heed/attention/reference.h"
#include "heed/core/data_type.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/statistics.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::all_rows;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::Inputs;
using testing_support::InputViews;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::run;
using testing_support::run_on_threads;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::statistics_of;
using testing_support::TargetTest;
using testing_support::weights_of;

constexpr float kLowest = std::numeric_limits<float>::lowest();
using testing_support::kInfinity;
constexpr Sizes kSizes{.num_heads = 2, .num_kv_heads = 1, .q_len = 21, .kv_len = 2300};

class LargeScores : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(LargeScores);

// Returns numbers to add to the scores of some queries: every third row has `offset` everywhere,
// with more of it on every other key.
Tensor<float> offsets(float offset, const Sizes& sizes = kSizes) {
  Tensor<float> added({sizes.q_len, sizes.kv_len});
  for (std::int64_t q = 0; q < sizes.q_len; q += 3) {
    for (std::int64_t k = 0; k < sizes.kv_len; ++k) {
      added(q, k) = k % 2 == 1 && q % 2 == 1 ? std::max(offset * 1.25F, kLowest) : offset;
    }
  }
  return added;
}

std::vector<float> some_offsets() { return {-1e6F, -1e9F, 1e9F, -2.4e38F, -3e38F, kLowest}; }

void expect_reference(const AttentionOutput<float>& found, const InputViews& in,
                      const AttentionOptions& options, const std::string& what,
                      double tolerance = 2e-6) {
  const auto expected = reference::attention(in.query, in.key, in.value, options);
  EXPECT_LE(max_difference(found.out, expected.out), tolerance) << what;
  for (std::int64_t i = 0; i < expected.lse.num_elements(); ++i) {
    const float lse = expected.lse.data()[i];
    EXPECT_NEAR(found.lse.data()[i], lse, 2e-6F + 2e-7F * std::abs(lse)) << what << ", row " << i;
  }
}

TEST_P(LargeScores, OfAMaskOrABias) {
  const Inputs in(kSizes);
  for (const float offset : some_offsets()) {
    const Tensor<float> added = offsets(offset);
    for (const AttentionOptions& options :
         {AttentionOptions{.mask = Mask::additive(added)}, AttentionOptions{.bias = added}}) {
      const std::string what = options.bias ? "bias" : "mask";
      const auto found = run(table(), in, options);
      expect_reference(found, in, options, what + std::to_string(offset));
      EXPECT_TRUE(same_bits(found.out, run_on_threads(3, table(), in, options).out));
    }
  }
}

// Like padding on the left: more than a tile of keys without weight, then others.
TEST_P(LargeScores, BeforeOthers) {
  for (const std::int64_t q_len : {1, 20}) {
    const Sizes sizes{.q_len = q_len, .kv_len = 1300};
    const Inputs in(sizes);
    for (const float offset : {-2e5F, -1e9F, kLowest}) {
      for (const std::int64_t padding : {128, 200, 1100}) {
        Tensor<float> added({1, sizes.kv_len});
        for (std::int64_t k = 0; k < padding; ++k) added(0, k) = offset;
        const AttentionOptions options{.mask = Mask::additive(added)};
        const std::string what = std::to_string(offset) + ", " + std::to_string(padding);
        expect_reference(run(table(), in, options), in, options, what);
        const Tensor<float> grad_out = grad_out_for(in);
        const auto found = gradients_of(table(), grad_out, in, options);
        const auto expected =
            reference::attention_backward(grad_out, in.query, in.key, in.value, options);
        EXPECT_LE(max_difference(found.query, expected.query), 1e-5) << what;
        EXPECT_LE(max_difference(found.value, expected.value), 1e-5) << what;
      }
    }
  }
}

// On the plain path: the products of the first keys are as low.
TEST_P(LargeScores, OfProductsBeforeOthers) {
  for (const std::int64_t q_len : {1, 5}) {
    Inputs in({.q_len = q_len, .kv_len = 700});
    for (std::int64_t q = 0; q < q_len; ++q) in.query(0, 0, q, 0) = 1e3F;
    for (std::int64_t k = 0; k < 700; ++k) in.key(0, 0, k, 0) = k < 300 ? -1e6F : 0.0F;
    const AttentionOptions options{.scale = 1.0F};
    expect_reference(run(table(), in, options), in, options, "", 2e-5);
    const Tensor<float> grad_out = grad_out_for(in);
    const auto found = gradients_of(table(), grad_out, in, options);
    const auto expected =
        reference::attention_backward(grad_out, in.query, in.key, in.value, options);
    EXPECT_LE(max_difference(found.value, expected.value), 2e-5);
  }
}

// The other rows keep their bits.
TEST_P(LargeScores, LeaveOtherRowsAlone) {
  const Inputs in(kSizes);
  const Tensor<float> none({kSizes.q_len, kSizes.kv_len});
  const Tensor<float> added = offsets(kLowest);
  const auto alone = run(table(), in, {.bias = none});
  const auto beside = run(table(), in, {.bias = added});
  const Tensor<float> grad_out = grad_out_for(in);
  const auto grad_alone = gradients_of(table(), grad_out, in, {.bias = none});
  const auto grad_beside = gradients_of(table(), grad_out, in, {.bias = added});
  for (std::int64_t q = 0; q < kSizes.q_len; ++q) {
    const auto is_same = [q](const Tensor<float>& a, const Tensor<float>& b) {
      return same_bits(to_tensor(a.view().select(2, q)), to_tensor(b.view().select(2, q)));
    };
    EXPECT_EQ(is_same(alone.out, beside.out), q % 3 != 0) << q;
    EXPECT_EQ(is_same(grad_alone.query, grad_beside.query), q % 3 != 0) << q;
  }
}

// Without a mask, on the plain path, in panels and on the decode path.
TEST_P(LargeScores, OfTheProductsAlone) {
  for (const std::int64_t q_len : {1, 5}) {
    const Sizes sizes{.q_len = q_len, .kv_len = 1300};
    Inputs in(sizes);
    for (const float score : {-1e9F, -2.5e38F, -3.3e38F}) {
      if (q_len > 1) in.query(0, 0, q_len - 1, 0) = 0;  // the last query is an ordinary one
      for (std::int64_t q = 0; q < std::max<std::int64_t>(q_len - 1, 1); ++q) {
        for (std::int64_t d = 0; d < 16; ++d) in.query(0, 0, q, d) = d == 0 ? std::sqrt(-score) : 0;
      }
      for (std::int64_t k = 0; k < sizes.kv_len; ++k) in.key(0, 0, k, 0) = -std::sqrt(-score);
      const AttentionOptions options{.scale = 1.0F};
      expect_reference(run(table(), in, options), in, options, std::to_string(score), 2e-5);
      // The weights are 1/n, not 1: an lse of this size cannot represent log n.
      const auto grads = gradients_of(table(), grad_out_for(in), in, options);
      const auto expected =
          reference::attention_backward(grad_out_for(in), in.query, in.key, in.value, options);
      EXPECT_LE(max_difference(grads.value, expected.value), 2e-5) << score;
    }
  }
}

TEST_P(LargeScores, OfHalfPrecision) {
  const Inputs in(kSizes);
  const auto rounded = [](const Tensor<float>& tensor) {
    auto result = Tensor<BFloat16>::uninitialized(tensor.shape());
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      result.data()[i] = static_cast<BFloat16>(tensor.data()[i]);
    }
    return result;
  };
  const Tensor<BFloat16> query = rounded(in.query);
  const Tensor<BFloat16> key = rounded(in.key);
  const Tensor<BFloat16> value = rounded(in.value);
  const Tensor<float> added = offsets(kLowest);
  const AttentionOptions options{.mask = Mask::additive(added)};
  auto out = Tensor<BFloat16>(in.query.shape());
  Tensor<float> lse({1, 2, kSizes.q_len});
  testing_support::run_into<BFloat16>(table(), {query, key, value}, options,
                                      {.out = out, .lse = lse});
  const auto widened = [](const Tensor<BFloat16>& tensor) {
    Tensor<float> result(tensor.shape());
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) {
      result.data()[i] = static_cast<float>(tensor.data()[i]);
    }
    return result;
  };
  const auto expected = reference::attention(widened(query), widened(key), widened(value), options);
  EXPECT_LE(max_difference(widened(out), expected.out), 0.01);
  EXPECT_EQ(lse(0, 0, 0), kLowest);
  EXPECT_EQ(lse(0, 1, 18), kLowest);
}

TEST_P(LargeScores, OfTheWayBack) {
  const Inputs in(kSizes);
  const Tensor<float> grad_out = grad_out_for(in);
  const Tensor<float> sinks({2}, {0.5F, -0.5F});
  const Tensor<float> slopes({2}, {0.5F, 0.25F});
  for (const float offset : some_offsets()) {
    const Tensor<float> added = offsets(offset);
    for (const AttentionOptions& options :
         {AttentionOptions{.mask = Mask::additive(added), .dropout = {.probability = 0.3F}},
          AttentionOptions{.alibi_slopes = slopes, .bias = added, .sinks = sinks, .softcap = 30}}) {
      const auto found = gradients_of(table(), grad_out, in, options);
      const auto expected =
          reference::attention_backward(grad_out, in.query, in.key, in.value, options);
      const std::string what = std::to_string(offset) + (options.bias ? ", bias" : ", mask");
      EXPECT_LE(max_difference(found.query, expected.query), 1e-5) << what;
      EXPECT_LE(max_difference(found.key, expected.key), 2e-5) << what;
      EXPECT_LE(max_difference(found.value, expected.value), 2e-5) << what;
      EXPECT_LE(max_difference(found.bias, expected.bias), 1e-5) << what;
      EXPECT_LE(max_difference(found.sinks, expected.sinks), 1e-5) << what;
      EXPECT_TRUE(same_bits(found, gradients_of(table(), grad_out, in, options, 3))) << what;
    }
  }
}

TEST_P(LargeScores, OfSinks) {
  const Sizes sizes{.num_heads = 3, .num_kv_heads = 3, .q_len = 4, .kv_len = 130};
  const Inputs in(sizes);
  const Tensor<float> sinks({3}, {-3e38F, kLowest, 3e38F});
  Tensor<float> added = offsets(kLowest, sizes);
  for (std::int64_t k = 0; k < sizes.kv_len; ++k) added(1, k) = -kInfinity;
  const AttentionOptions options{.mask = Mask::additive(added), .sinks = sinks};
  expect_reference(run(table(), in, options), in, options, "sinks");
}

// A sink as large as the three scores has a quarter of the weight.
TEST_P(LargeScores, OfASinkOnTheWayBack) {
  const Inputs in({.kv_len = 3});
  const Tensor<float> added({1, 3}, {-1e9F, -1e9F, -1e9F});
  const Tensor<float> sinks({1}, {-1e9F});
  const AttentionOptions options{.mask = Mask::additive(added), .sinks = sinks};
  const Tensor<float> grad_out = grad_out_for(in);
  const auto forward = run(table(), in, options);
  float delta = 0;
  for (std::int64_t d = 0; d < 16; ++d) delta += grad_out(0, 0, 0, d) * forward.out(0, 0, 0, d);
  EXPECT_NEAR(gradients_of(table(), grad_out, in, options).sinks(0), -delta / 4, 1e-6);
}

TEST_P(LargeScores, OfWeightsAndStatistics) {
  const Inputs in(kSizes);
  for (const float offset : some_offsets()) {
    const Tensor<float> added = offsets(offset);
    const AttentionOptions options{.mask = Mask::additive(added)};
    const auto rows = all_rows(in.query.shape());
    EXPECT_LE(max_difference(weights_of(table(), in, rows, options),
                             reference::attention_weights(in.query, in.key, rows, options)),
              2e-7);
    const auto statistics = statistics_of(table(), in, options, 1);
    const auto plain = reference::attention_statistics(in.query, in.key, options, {.top_k = 1});
    // The error of a sum of 2300 numbers in float.
    EXPECT_LE(max_difference(statistics.entropy, plain.entropy), 1e-4);
    EXPECT_LE(max_difference(statistics.key_mass, plain.key_mass), 1e-4);
  }
}

}  // namespace
}  // namespace heed
