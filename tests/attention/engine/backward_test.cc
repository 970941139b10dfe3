// The fused backward pass on each instruction set, over awkward shapes and every option.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/engine/passes.h"
#include "heed/attention/position.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::Each;
using testing_support::alone_and_in_pairs;
using testing_support::DrawnOptions;
using testing_support::elements_of;
using testing_support::expected_gradients;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::inaccuracy;
using testing_support::Inputs;
using testing_support::InputViews;
using testing_support::normal;
using testing_support::Option;
using testing_support::options_where;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::TargetTest;

class FusedBackward : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(FusedBackward);

void expect_gradients(const kernels::KernelTable& table, const InputViews& in,
                      const AttentionOptions& options, const std::string& what) {
  const Tensor<float> grad_out = grad_out_for(in);
  const auto found = gradients_of(table, grad_out, in, options);
  EXPECT_EQ(inaccuracy(found, expected_gradients(grad_out, in, options)), "") << what;
  for (const int threads : {2, 7}) {
    EXPECT_TRUE(same_bits(gradients_of(table, grad_out, in, options, threads), found))
        << what << " with " << threads << " threads";
  }
}

TEST_P(FusedBackward, AwkwardLengths) {
  for (const std::int64_t q_len : {0, 1, 15, 47, 48, 49, 127, 193}) {
    for (const std::int64_t kv_len : {0, 1, 7, 127, 128, 129, 257}) {
      const Inputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 16, .value_dim = 16});
      const std::string what = std::to_string(q_len) + " queries, " + std::to_string(kv_len);
      expect_gradients(table(), in, {}, what);
      expect_gradients(table(), in, {.mask = causal_bottom_right()}, what + ", causal");
    }
  }
}

TEST_P(FusedBackward, AwkwardDims) {
  for (const std::int64_t head_dim : {0, 1, 3, 17, 64, 79, 96, 128, 512}) {
    for (const std::int64_t value_dim : {1, 16, 31, 112, 512}) {
      const Inputs in({.q_len = 50, .kv_len = 70, .head_dim = head_dim, .value_dim = value_dim});
      expect_gradients(table(), in, {.mask = causal_top_left()},
                       std::to_string(head_dim) + ", " + std::to_string(value_dim));
    }
  }
}

// Rows of several heads share a panel; batch entries have separate memory.
TEST_P(FusedBackward, GroupedHeadsInABatch) {
  for (const std::int64_t kv_heads : {1, 2, 6}) {
    const Inputs in({.batch = 2,
                     .num_heads = 6,
                     .num_kv_heads = kv_heads,
                     .q_len = 61,
                     .kv_len = 150,
                     .head_dim = 24,
                     .value_dim = 8});
    expect_gradients(table(), in, {}, "full");
    expect_gradients(table(), in, {.mask = sliding_window(20, 3, Alignment::bottom_right())},
                     "window");
  }
}

// One head has so many queries that they are divided into parts.
TEST_P(FusedBackward, ManyQueriesOfFewHeads) {
  const Inputs in({.q_len = 1500, .kv_len = 131, .head_dim = 16, .value_dim = 20});
  const auto bias = normal<float>({1500, 1}, 5);
  const auto sinks = normal<float>({1}, 6);
  expect_gradients(table(), in, {.bias = bias, .sinks = sinks}, "parts");
}

constexpr std::int64_t kQueries = 53;
constexpr std::int64_t kKeys = 140;

TEST_P(FusedBackward, EveryOptionAloneAndInPairs) {
  const Sizes sizes{.batch = 2,
                    .num_heads = 4,
                    .num_kv_heads = 2,
                    .q_len = kQueries,
                    .kv_len = kKeys,
                    .head_dim = 9,
                    .value_dim = 17};
  const Inputs in(sizes);
  std::uint64_t seed = 0;
  for (const auto& chosen : alone_and_in_pairs(options_where(&Option::is_option), 7)) {
    const DrawnOptions<float> options(sizes, chosen, ++seed);
    expect_gradients(table(), in, *options, to_string(chosen));
  }
}

TEST_P(FusedBackward, ABiasOfAnyShape) {
  const Inputs in({.batch = 2,
                   .num_heads = 4,
                   .num_kv_heads = 2,
                   .q_len = kQueries,
                   .kv_len = kKeys,
                   .head_dim = 4,
                   .value_dim = 4});
  for (const std::int64_t b : {1, 2}) {
    for (const std::int64_t h : {1, 4}) {
      for (const std::int64_t q : {std::int64_t{1}, kQueries}) {
        for (const std::int64_t k : {std::int64_t{1}, kKeys}) {
          const auto shaped = normal<float>({b, h, q, k}, 5);
          expect_gradients(table(), in, {.bias = shaped}, to_string(shaped.shape()));
        }
      }
    }
  }
  const auto row = normal<float>({kKeys}, 5);
  expect_gradients(table(), in, {.bias = row}, "one row");
}

// Scores so large that rounding them matters, and a softmax that is nearly one-hot.
TEST_P(FusedBackward, LargeScores) {
  for (const float magnitude : {5.0F, 25.0F, 80.0F}) {
    const Inputs in({.q_len = 60, .kv_len = 300, .head_dim = 32, .value_dim = 32}, magnitude);
    expect_gradients(table(), in, {}, std::to_string(magnitude));
    expect_gradients(table(), in, {.softcap = 50}, std::to_string(magnitude) + ", capped");
  }
}

TEST_P(FusedBackward, StridedTensors) {
  const Inputs in({.num_heads = 37, .num_kv_heads = 37, .q_len = 65, .kv_len = 66});
  const auto transposed = [](const Tensor<float>& tensor) {
    return to_tensor(tensor.view().permute({0, 2, 1, 3}));
  };
  const Tensor<float> grad_out = grad_out_for(in);
  const auto expected = gradients_of(table(), grad_out, in, {});
  const auto query = transposed(in.query);
  const auto key = transposed(in.key);
  const auto value = transposed(in.value);
  const auto grad = transposed(grad_out);
  const auto back = [](const Tensor<float>& tensor) -> FloatView {
    return tensor.view().permute({0, 2, 1, 3});
  };
  const auto found = gradients_of(table(), back(grad), {back(query), back(key), back(value)}, {});
  EXPECT_TRUE(same_bits(found, expected));
}

// Where the tensors of a call exceed 8 MiB, panels prefetch the next rows.
TEST_P(FusedBackward, SameBitsInLargeTensors) {
  const auto entry = [](const auto& tensor) { return tensor.view().slice(0, 2, 3); };
  const auto same = [&](const Tensor<float>& all, const Tensor<float>& one) {
    return same_bits(to_tensor(entry(all)), one);
  };
  for (const auto& [head_dim, value_dim] : {std::pair{128, 96}, {256, 0}}) {
    const Inputs in({.batch = 10,
                     .num_heads = 4,
                     .num_kv_heads = 2,
                     .q_len = 65,
                     .kv_len = 300,
                     .head_dim = head_dim,
                     .value_dim = value_dim});
    const Tensor<float> grad_out = grad_out_for(in);
    for (const Mask& mask :
         {Mask(), causal_bottom_right(), sliding_window(40, 0, Alignment::bottom_right())}) {
      const auto all = gradients_of(table(), grad_out, in, {.mask = mask});
      const auto one =
          gradients_of(table(), entry(grad_out), {entry(in.query), entry(in.key), entry(in.value)},
                       {.mask = mask});
      EXPECT_TRUE(same(all.query, one.query) && same(all.key, one.key) &&
                  same(all.value, one.value))
          << mask.description() << " " << value_dim;
    }
  }
}

using testing_support::kNaN;

bool is_finite(const Tensor<float>& tensor) {
  for (const float x : tensor.elements()) {
    if (!std::isfinite(x)) return false;
  }
  return true;
}

// Keys 3 and 130 to 139 are hidden, and query 20 sees nothing.
std::vector<Mask> masks_that_hide() {
  const auto hides = [](int, int, int q, int k) { return k != 3 && k < 130 && q != 20; };
  Tensor<float> added({kQueries, kKeys});
  std::vector<RowRange> ranges;
  for (int q = 0; q < kQueries; ++q) {
    ranges.push_back(q == 20 ? RowRange{} : RowRange{4 + q / 9, 130 - q});
    for (int k = 0; k < kKeys; ++k) {
      if (!hides(0, 0, q, k)) added(q, k) = -std::numeric_limits<float>::infinity();
    }
  }
  return {Mask::where(hides), Mask::additive(std::move(added)), Mask::rows(ranges)};
}

TEST_P(FusedBackward, WhatIsHiddenReachesNobody) {
  const Inputs in({.num_heads = 2,
                   .num_kv_heads = 1,
                   .q_len = kQueries,
                   .kv_len = kKeys,
                   .head_dim = 10,
                   .value_dim = 18});
  Inputs poisoned = in;
  const Tensor<float> grad_out = grad_out_for(in);
  Tensor<float> poisoned_grad = grad_out;
  const auto poison = [](Tensor<float>& tensor, std::int64_t index) {
    for_each_element(tensor.view().select(2, index), [](float& element) { element = kNaN; });
  };
  for (const std::int64_t k : {3, 130, 135, 139}) {
    poison(poisoned.key, k);
    poison(poisoned.value, k);
  }
  poison(poisoned.query, 20);
  poison(poisoned_grad, 20);
  std::vector<AttentionOptions> ways(4);
  ways[1].softcap = 3;
  ways[2].dropout = {.probability = 0.4F, .seed = 3};
  ways[3].score_mod = [](auto score, int, int, int q, int k) {
    return score * (1 + 0.1F * static_cast<float>((q + k) % 4));
  };
  const auto sink = normal<float>({2}, 8);
  for (const Mask& mask : masks_that_hide()) {
    for (AttentionOptions options : ways) {
      options.mask = mask;
      options.sinks = sink;
      const auto clean = gradients_of(table(), grad_out, in, options);
      const auto found = gradients_of(table(), poisoned_grad, poisoned, options);
      EXPECT_TRUE(is_finite(clean.query)) << mask.description();
      EXPECT_TRUE(same_bits(found, clean)) << mask.description();
      EXPECT_THAT(elements_of(to_tensor(found.key.view().select(2, 3))), Each(0.0F));
      EXPECT_THAT(elements_of(to_tensor(found.value.view().select(2, 135))), Each(0.0F));
    }
  }
}

// A non-finite query affects itself and the keys that it sees.
TEST_P(FusedBackward, WhatIsSeenAndNotFiniteIsNotLost) {
  Inputs in({.q_len = kQueries, .kv_len = kKeys});
  in.query(0, 0, 11, 5) = kNaN;
  const auto found = gradients_of(table(), grad_out_for(in), in, {.mask = causal_top_left()});
  for (std::int64_t q = 0; q < kQueries; ++q) {
    EXPECT_EQ(std::isnan(found.query(0, 0, q, 0)), q == 11) << q;
  }
  for (std::int64_t k = 0; k < kKeys; ++k) {
    EXPECT_EQ(std::isnan(found.key(0, 0, k, 0)), k <= 11) << k;
    EXPECT_EQ(std::isnan(found.value(0, 0, k, 0)), k <= 11) << k;
  }
}

}  // namespace
}  // namespace heed
