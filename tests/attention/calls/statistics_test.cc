#include "heed/attention/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "heed/attention/reference.h"
#include "heed/core/parallel.h"
#include "support/heap.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

// Computed by the kernels, or by the reference if HEED_TARGET says so.
struct StatisticsInputs {
  Tensor<float> query = normal<float>({2, 4, 30, 16}, 1);
  Tensor<float> key = normal<float>({2, 2, 40, 16}, 2);
  Tensor<float> sinks = normal<float>({4}, 3);
  std::vector<AttentionRow> rows{{1, 3, 29}, {0, 0, 0}, {1, 2, 7}, {1, 3, 29}};

  AttentionOptions options() const {
    AttentionOptions options{.mask = causal_bottom_right()};
    options.sinks = sinks;
    options.softcap = 3;
    options.dropout.probability = 0.5F;
    return options;
  }
};

TEST(AttentionWeights, AgreeWithTheReference) {
  const StatisticsInputs in;
  const auto found = attention_weights(in.query, in.key, in.rows, in.options());
  const auto expected = reference::attention_weights(in.query, in.key, in.rows, in.options());
  EXPECT_LT(max_difference(found, expected), 2e-7);
}

TEST(AttentionStatistics, AgreeWithTheReference) {
  const StatisticsInputs in;
  const auto found = attention_statistics(in.query, in.key, in.options(), {.top_k = 3});
  const auto expected =
      reference::attention_statistics(in.query, in.key, in.options(), {.top_k = 3});
  EXPECT_LT(max_difference(found.lse, expected.lse), 2e-6);
  EXPECT_LT(max_difference(found.entropy, expected.entropy), 2e-6);
  EXPECT_LT(max_difference(found.max_weight, expected.max_weight), 2e-7);
  EXPECT_LT(max_difference(found.top_weights, expected.top_weights), 2e-7);
  EXPECT_LT(max_difference(found.key_mass, expected.key_mass), 2e-6);
  EXPECT_TRUE(same_bits(found.max_key, expected.max_key));
  EXPECT_TRUE(same_bits(found.top_keys, expected.top_keys));
}

TEST(AttentionStatistics, AgreeWithTheReferenceInDouble) {
  const auto x = normal<double>({1, 2, 9, 4}, 1);
  const std::vector<AttentionRow> rows{{0, 1, 8}};
  const AttentionOptions64 options{.mask = causal()};
  EXPECT_LT(max_difference(attention_statistics(x, x, options).entropy,
                           reference::attention_statistics(x, x, options).entropy),
            4e-15);
  EXPECT_LT(max_difference(attention_weights(x, x, rows, options),
                           reference::attention_weights(x, x, rows, options)),
            1e-15);
}

template <class Half>
void expect_halves_are_floats() {
  const StatisticsInputs in;
  Tensor<Half> half[] = {Tensor<Half>(in.query.shape()), Tensor<Half>(in.key.shape())};
  Tensor<float> wide[] = {in.query, in.key};
  for (int i = 0; i < 2; ++i) {
    std::transform(wide[i].elements().begin(), wide[i].elements().end(), half[i].elements().begin(),
                   [](float element) { return Half(element); });
    std::copy(half[i].elements().begin(), half[i].elements().end(), wide[i].elements().begin());
  }
  const auto found = attention_statistics(half[0], half[1], in.options(), {.top_k = 1});
  const auto expected = attention_statistics(wide[0], wide[1], in.options(), {.top_k = 1});
  EXPECT_TRUE(same_bits(found.entropy, expected.entropy));
  EXPECT_TRUE(same_bits(found.top_weights, expected.top_weights));
  EXPECT_TRUE(same_bits(found.key_mass, expected.key_mass));
  EXPECT_TRUE(same_bits(attention_weights(half[0], half[1], in.rows, in.options()),
                        attention_weights(wide[0], wide[1], in.rows, in.options())));
}

TEST(AttentionStatistics, HalvesAreTheFloatsTheyStandFor) {
  expect_halves_are_floats<Float16>();
  expect_halves_are_floats<BFloat16>();
}

TEST(AttentionStatistics, ReadsABroadcastBatch) {
  const StatisticsInputs in;
  const auto one = in.key.view().slice(0, 1, 2);
  const auto repeated = one.broadcast_to({2, 2, 40, 16});
  Tensor<float> copies = to_tensor(repeated);
  EXPECT_TRUE(same_bits(attention_statistics(in.query, repeated).key_mass,
                        attention_statistics(in.query, copies).key_mass));
}

TEST(AttentionStatistics, TheWeightsTimesTheValuesAreAttention) {
  const StatisticsInputs in;
  const auto value = normal<float>({2, 2, 40, 1}, 4);
  const auto out = attention(in.query, in.key, value);
  const auto weights = attention_weights(in.query, in.key, in.rows);
  for (std::size_t i = 0; i < in.rows.size(); ++i) {
    const AttentionRow& row = in.rows[i];
    double sum = 0;
    for (std::int64_t k = 0; k < 40; ++k) {
      sum += weights(static_cast<std::int64_t>(i), k) * value(row.batch, row.head / 2, k, 0);
    }
    EXPECT_NEAR(sum, out(row.batch, row.head, row.query, 0), 1e-6);
  }
}

// The matrix would take 96 MB.
TEST(AttentionStatistics, MemoryIsLinearInTheLengths) {
  const ThreadLimit one_thread(1);
  const auto query = normal<float>({1, 2, 600, 8}, 1);
  const auto extra_bytes = [&](std::int64_t kv_len) {
    const auto key = normal<float>({1, 1, kv_len, 8}, 2);
    return testing_support::measure_extra_bytes(
        [&] { return attention_statistics(query, key, {}, {.top_k = 4}); });
  };
  const std::int64_t bytes = extra_bytes(20000);
  EXPECT_LT(bytes, 4'000'000);
  EXPECT_LT(extra_bytes(40000), 2 * bytes + 256);
}

TEST(AttentionWeights, TakeNoMemoryBesideWhatIsAskedFor) {
  if (attention_target() == "reference") GTEST_SKIP() << "the reference copies its inputs";
  const ThreadLimit one_thread(1);
  const auto query = normal<float>({1, 2, 600, 8}, 1);
  const std::vector<AttentionRow> rows{{0, 0, 5}, {0, 1, 599}};
  const auto extra_bytes = [&](std::int64_t kv_len) {
    const auto key = normal<float>({1, 1, kv_len, 8}, 2);
    return testing_support::measure_extra_bytes(
        [&] { return attention_weights(query, key, rows); });
  };
  EXPECT_NEAR(static_cast<double>(extra_bytes(20000)), static_cast<double>(extra_bytes(2000)), 256);
}

TEST(AttentionStatistics, ChecksBeforeItComputes) {
  const StatisticsInputs in;
  const auto narrow = normal<float>({2, 2, 40, 15}, 2);
  const AttentionRow beyond{0, 3, 30};
  const AttentionRow before{-1, 0, 0};
  EXPECT_THAT([&] { attention_statistics(in.query, narrow); }, Refuses("key head_dim", "15"));
  EXPECT_THAT(([&] { attention_statistics(in.query, in.key, {}, {.top_k = -1}); }),
              Refuses("top_k", "-1"));
  EXPECT_THAT(([&] { attention_statistics(in.query, in.key, {.mask = causal()}); }),
              Refuses("q_len", "30"));
  EXPECT_THAT(([&] { attention_statistics(in.query, in.key, {.dropout = {.probability = 2}}); }),
              Refuses("dropout probability", "2"));
  EXPECT_THAT(([&] {
                attention_weights(in.query, in.key, {&beyond, 1});
              }),
              Refuses("rows[0].query", "30"));
  EXPECT_THAT(([&] {
                attention_weights(in.query, in.key, {&before, 1});
              }),
              Refuses("rows[0].batch", "-1"));
}

}  // namespace
}  // namespace heed
