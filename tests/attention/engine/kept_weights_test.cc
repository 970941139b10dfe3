// Gradients from weights that the forward pass kept, on each instruction set, compared with the
// reference like those from recomputed weights.
#include "attention/engine/kept_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/backward.h"
#include "heed/attention/position.h"
#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::expect_refused;
using testing_support::expected_gradients;
using testing_support::grad_out_for;
using testing_support::gradients_from;
using testing_support::inaccuracy;
using testing_support::Inputs;
using testing_support::InputViews;
using testing_support::kNaN;
using testing_support::normal;
using testing_support::run_for_backward;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::TargetTest;

class KeptWeights : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(KeptWeights);

void expect_kept(const kernels::KernelTable& table, const InputViews& in,
                 const AttentionOptions& options, const std::string& what) {
  const auto forward = run_for_backward(table, in, options);
  ASSERT_GT(forward.kept.num_elements(), 0) << what;
  const Tensor<float> grad_out = grad_out_for(in);
  const auto found = gradients_from(forward, table, grad_out, in, options);
  EXPECT_EQ(inaccuracy(found, expected_gradients(grad_out, in, options)), "") << what;
  for (const int threads : {2, 7}) {
    EXPECT_TRUE(same_bits(gradients_from(forward, table, grad_out, in, options, threads), found))
        << what << " with " << threads << " threads";
  }
}

TEST_P(KeptWeights, AwkwardLengths) {
  for (const std::int64_t q_len : {13, 15, 47, 48, 49, 127, 193}) {
    for (const std::int64_t kv_len : {1, 7, 127, 128, 129, 257}) {
      const Inputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 64, .value_dim = 48});
      const std::string what = std::to_string(q_len) + " queries, " + std::to_string(kv_len);
      expect_kept(table(), in, {}, what);
      expect_kept(table(), in, {.mask = causal_bottom_right()}, what + ", causal");
    }
  }
}

TEST_P(KeptWeights, AwkwardDims) {
  for (const std::int64_t head_dim : {1, 3, 17, 79, 128}) {
    for (const std::int64_t value_dim : {31, 112, 256}) {
      const Inputs in({.q_len = 50, .kv_len = 70, .head_dim = head_dim, .value_dim = value_dim});
      expect_kept(table(), in, {.mask = causal_top_left()},
                  std::to_string(head_dim) + ", " + std::to_string(value_dim));
    }
  }
}

TEST_P(KeptWeights, GroupedHeadsInABatch) {
  for (const std::int64_t kv_heads : {1, 2, 6}) {
    const Inputs in({.batch = 2,
                     .num_heads = 6,
                     .num_kv_heads = kv_heads,
                     .q_len = 61,
                     .kv_len = 150,
                     .head_dim = 24,
                     .value_dim = 40});
    expect_kept(table(), in, {}, "full");
    expect_kept(table(), in, {.mask = sliding_window(20, 3, Alignment::bottom_right())}, "window");
  }
}

// Queries are divided into parts; keys fill a chunk.
TEST_P(KeptWeights, ManyQueriesAndManyKeys) {
  const auto sinks = normal<float>({1}, 6);
  const Inputs many_queries({.q_len = 1500, .kv_len = 131, .head_dim = 64, .value_dim = 60});
  expect_kept(table(), many_queries, {.sinks = sinks}, "queries");
  const Inputs many_keys({.q_len = 83, .kv_len = 1024, .head_dim = 40, .value_dim = 60});
  expect_kept(table(), many_keys, {.scale = -0.4F, .query_offset = 941}, "keys");
}

// Offsets change from tile to tile and most weights are 0; with the largest scores rows are
// recomputed.
TEST_P(KeptWeights, LargeScores) {
  for (const float magnitude : {5.0F, 25.0F, 80.0F, 3e5F}) {
    const Inputs in({.q_len = 60, .kv_len = 300, .head_dim = 32, .value_dim = 32}, magnitude);
    expect_kept(table(), in, {}, std::to_string(magnitude));
  }
}

// Rows 0, 1 and so on see keys from 4 on, fewer and fewer, and row 20 sees none.
Mask mask_of_ranges(std::int64_t q_len) {
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < q_len; ++q) {
    ranges.push_back(q == 20 ? RowRange{} : RowRange{4 + q / 9, 130 - q});
  }
  return Mask::rows(std::move(ranges));
}

// Panels with non-finite hidden values multiply visible values only, and mark the hidden ones.
TEST_P(KeptWeights, WhatIsHiddenReachesNobody) {
  const Inputs in({.num_heads = 2, .q_len = 53, .kv_len = 140, .head_dim = 40, .value_dim = 24});
  const AttentionOptions options{.mask = mask_of_ranges(53)};
  expect_kept(table(), in, options, "ranges");
  Inputs poisoned = in;
  const auto poison = [](Tensor<float>& tensor, std::int64_t index) {
    for_each_element(tensor.view().select(2, index), [](float& element) { element = kNaN; });
  };
  for (const std::int64_t k : {3, 131, 139}) {
    poison(poisoned.key, k);
    poison(poisoned.value, k);
  }
  poison(poisoned.query, 20);
  const Tensor<float> grad_out = grad_out_for(in);
  const auto clean = run_for_backward(table(), in, options);
  const auto hurt = run_for_backward(table(), poisoned, options);
  EXPECT_TRUE(same_bits(gradients_from(hurt, table(), grad_out, poisoned, options),
                        gradients_from(clean, table(), grad_out, in, options)));
}

TEST_P(KeptWeights, AreReadWhereTheyAre) {
  const Inputs in({.num_heads = 2,
                   .num_kv_heads = 2,
                   .q_len = 100,
                   .kv_len = 140,
                   .head_dim = 40,
                   .value_dim = 24});
  const Tensor<float> grad_out = grad_out_for(in);
  auto forward = run_for_backward(table(), in, {});
  const auto from_kept = gradients_from(forward, table(), grad_out, in, {});
  // Panels without a width keep nothing.
  Tensor<float> kept = std::exchange(forward.kept, {});
  const auto again = gradients_from(forward, table(), grad_out, in, {});
  std::fill_n(kept.data(), kept.num_elements(), 0.0F);
  forward.kept = std::move(kept);
  EXPECT_TRUE(same_bits(gradients_from(forward, table(), grad_out, in, {}), again));
  EXPECT_FALSE(same_bits(from_kept, again));
}

TEST_P(KeptWeights, OfPlainWeightsThatAreSmall) {
  const Sizes sizes{.num_heads = 2,
                    .num_kv_heads = 2,
                    .q_len = 60,
                    .kv_len = 140,
                    .head_dim = 40,
                    .value_dim = 24};
  const auto keeps = [&](const Sizes& of, const AttentionOptions& options) {
    return run_for_backward(table(), Inputs(of), options).kept.num_elements() > 0;
  };
  EXPECT_TRUE(keeps(sizes, {}));
  Sizes others = sizes;
  others.q_len = 12;
  EXPECT_FALSE(keeps(others, {})) << "few rows";
  others = sizes;
  others.q_len = others.kv_len = 129;
  EXPECT_FALSE(keeps(others, {})) << "129 · 129 > 258 · 64";
  others.q_len = others.kv_len = 128;
  EXPECT_TRUE(keeps(others, {})) << "128 · 128 = 256 · 64";
  others.batch = 257;
  others.num_heads = others.num_kv_heads = 1;
  EXPECT_FALSE(keeps(others, {})) << "257 · 128 · 128 numbers are more than 16 MiB";
  const auto bias = normal<float>({140}, 5);
  const auto slopes = alibi_slopes<float>(2);
  const auto score_mod = [](auto score, int, int, int, int) { return score * 2; };
  const std::vector<AttentionOptions> not_plain{
      {.mask = Mask::where([](int, int, int q, int k) { return (q + k) % 3 != 0; })},
      {.score_mod = score_mod},
      {.alibi_slopes = slopes},
      {.bias = bias},
      {.softcap = 2},
      {.dropout = {.probability = 0.3F, .seed = 5}}};
  for (std::size_t i = 0; i < not_plain.size(); ++i) EXPECT_FALSE(keeps(sizes, not_plain[i])) << i;
}

// The library's functions, on the instruction set in use.
template <class T>
Tensor<T> numbers(const Shape& shape, std::uint64_t seed) {
  const auto drawn = normal<float>(shape, seed);
  Tensor<T> tensor(shape);
  std::transform(drawn.elements().begin(), drawn.elements().end(), tensor.elements().begin(),
                 [](float number) { return T(number); });
  return tensor;
}

template <class T>
double difference_to_gradients_of_lse() {
  const Shape shape{2, 3, 70, 32};
  const auto query = numbers<T>(shape, 1);
  const auto key = numbers<T>(shape, 2);
  const auto value = numbers<T>(shape, 3);
  const auto grad_out = numbers<T>(shape, 4);
  const auto gradients = [&](const auto& forward) {
    return attention_backward(grad_out, query, key, value, forward);
  };
  const auto found = gradients(attention_for_backward(query, key, value));
  const auto expected = gradients(attention_with_lse(query, key, value));
  double largest = 0;
  for (const auto member :
       {&decltype(found)::query, &decltype(found)::key, &decltype(found)::value}) {
    for (std::int64_t i = 0; i < query.num_elements(); ++i) {
      const auto a = static_cast<double>(static_cast<float>((found.*member).data()[i]));
      const auto b = static_cast<double>(static_cast<float>((expected.*member).data()[i]));
      largest = std::max(largest, std::abs(a - b));
    }
  }
  return largest;
}

TEST(AttentionForBackward, OfEveryType) {
  EXPECT_LE(difference_to_gradients_of_lse<float>(), 2e-6);
  EXPECT_LE(difference_to_gradients_of_lse<double>(), 2e-7);
  EXPECT_LE(difference_to_gradients_of_lse<Float16>(), 4e-3);
  EXPECT_LE(difference_to_gradients_of_lse<BFloat16>(), 4e-2);
}

TEST(AttentionForBackward, RefusesWeightsOfAnotherCall) {
  const auto x = normal<float>({1, 2, 40, 32}, 1);
  const auto y = normal<float>({1, 2, 60, 32}, 1);
  auto forward = attention_for_backward(x, x, x);
  if (forward.kept.num_elements() == 0) GTEST_SKIP() << "nothing is kept by plain loops";
  forward.kept = attention_for_backward(y, y, y).kept;
  const std::string refusal = "attention_backward: forward.kept has shape [";
  expect_refused([&] { attention_backward(x, x, x, x, forward); }, refusal);
  expect_refused([&] { attention_backward(x, x, x, x, forward, {.softcap = 2}); }, refusal);
}

// Above 1024 keys threads may share the keys of a row, and then keep no weights.
TEST(AttentionForBackward, KeepsTheSameWhateverTheThreads) {
  const auto kept_size = [](std::int64_t kv_len, int threads) {
    const ThreadLimit limit(threads);
    return plan({.q_len = 40, .kv_len = kv_len, .head_dim = 64, .value_dim = 64}).kept_size();
  };
  for (const std::int64_t kv_len : {1024, 1025, 1100}) {
    EXPECT_EQ(kept_size(kv_len, 1), kept_size(kv_len, 7)) << kv_len;
  }
  EXPECT_EQ(kept_size(1025, 1), 0);
}

TEST(AttentionForBackward, APlanSaysHowMuchIsKept) {
  const auto x = normal<float>({1, 2, 40, 32}, 1);
  const AttentionPlan made = plan({.num_heads = 2,
                                   .num_kv_heads = 2,
                                   .q_len = 40,
                                   .kv_len = 40,
                                   .head_dim = 32,
                                   .value_dim = 32});
  const auto forward = attention_for_backward(x, x, x);
  EXPECT_EQ(made.kept_size(), forward.kept.num_elements());
  Tensor<float> out(x.shape());
  const auto run = [&](TensorView<float> kept) {
    return [&made, &out, &x, kept] { made.run_into({.out = out, .kept = kept}, x, x, x); };
  };
  Tensor<float> longer({2 * made.kept_size()});
  run(longer.view().slice(0, 0, made.kept_size()))();
  expect_refused(run(longer), "AttentionPlan::run: kept has shape [");
  expect_refused(run(longer.view().slice(0, 1, made.kept_size() + 1)),
                 "kept begins 4 bytes behind a multiple of 64");
  const TensorView<float> gaps(longer.data(), {made.kept_size()}, {2});
  expect_refused(run(gaps), "kept has a stride of 2, expected no gaps");
}

}  // namespace
}  // namespace heed
