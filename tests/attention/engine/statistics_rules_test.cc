#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "attention/engine/passes.h"
#include "heed/core/parallel.h"
#include "support/statistics.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::Each;
using testing_support::all_rows;
using testing_support::elements_of;
using testing_support::Inputs;
using testing_support::same_bits;
using testing_support::statistics_of;
using testing_support::TargetTest;
using testing_support::WeightJob;
using testing_support::weights_of;

using testing_support::kInfinity;
using testing_support::kNaN;

class StatisticsRules : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(StatisticsRules);

TEST_P(StatisticsRules, EqualWeightsGoToTheFirstKeys) {
  Inputs in({.q_len = 20, .kv_len = 300, .head_dim = 4}, 0);
  const auto found = statistics_of(table(), in, {}, 130);
  for (std::int64_t q = 0; q < 20; ++q) {
    for (std::int64_t i = 0; i < 130; ++i) ASSERT_EQ(found.top_keys(0, 0, q, i), i);
    EXPECT_NEAR(found.entropy(0, 0, q), std::log(300.0), 4 * 0x1p-24 * std::log(300.0));
  }
}

TEST_P(StatisticsRules, ASinkIsMissingMass) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = 30, .kv_len = 60, .head_dim = 8});
  Tensor<float> sinks({2}, {2.0F, -kInfinity});
  AttentionOptions options;
  options.sinks = sinks;
  const auto found = statistics_of(table(), in, options);
  double mass[2] = {0, 0};
  double sink_shares = 0;
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t k = 0; k < 60; ++k) mass[h] += found.key_mass(0, h, k);
  }
  for (std::int64_t q = 0; q < 30; ++q) sink_shares += std::exp(2.0 - found.lse(0, 0, q));
  EXPECT_NEAR(mass[0], 30 - sink_shares, 1e-5);
  EXPECT_NEAR(mass[1], 30, 1e-5);
}

TEST_P(StatisticsRules, RowsThatSeeNothing) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = 70, .kv_len = 200, .head_dim = 8});
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 70; ++q) {
    ranges.push_back(q % 3 == 0 ? RowRange{5, 5} : RowRange{q, q + 100});
  }
  const Tensor<float> sinks({2}, {1.0F, -kInfinity});
  for (AttentionOptions options : {AttentionOptions{}, AttentionOptions{.sinks = sinks.view()}}) {
    options.mask = Mask::rows(ranges);
    const auto found = statistics_of(table(), in, options, 2);
    for (std::int64_t q = 0; q < 70; q += 3) {
      EXPECT_EQ(found.entropy(0, 0, q), 0);
      EXPECT_FALSE(std::signbit(found.entropy(0, 0, q)));
      EXPECT_EQ(found.max_weight(0, 0, q), 0);
      EXPECT_EQ(found.max_key(0, 0, q), -1);
      EXPECT_EQ(found.top_keys(0, 0, q, 1), -1);
      EXPECT_EQ(found.lse(0, 1, q), -kInfinity);
    }
  }
  // No query sees a key.
  const AttentionOptions none{.mask = Mask::where([](int, int, int, int) { return false; })};
  const auto nothing = statistics_of(table(), in, none, 1);
  EXPECT_THAT(nothing.key_mass.elements(), Each(0));
  EXPECT_THAT(nothing.max_key.elements(), Each(-1));
  EXPECT_THAT(elements_of(weights_of(table(), in, all_rows(in.query.shape()), none)), Each(0));
}

TEST_P(StatisticsRules, HiddenNaNChangesNoBit) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 90, .kv_len = 300, .head_dim = 24});
  const Mask irregular = Mask::where([](int, int, int, int k) { return k % 7 != 3; });
  const auto rows = all_rows(in.query.shape());
  for (const Mask& mask : {sliding_window(40, 0, Alignment::top_left()), irregular,
                           sliding_window(40, 3, Alignment::top_left()) & irregular}) {
    Inputs poisoned = in;
    const auto visible = materialize_allow(mask, {.q_len = 90, .kv_len = 300});
    for (std::int64_t k = 0; k < 300; ++k) {
      bool is_seen = false;
      for (std::int64_t q = 0; q < 90; ++q) is_seen = is_seen || visible(0, 0, q, k);
      if (is_seen) continue;
      for (std::int64_t d = 0; d < 24; ++d)
        poisoned.key(0, 0, k, d) = d % 2 == 0 ? kNaN : kInfinity;
    }
    const auto clean = statistics_of(table(), in, {.mask = mask}, 2);
    const auto found = statistics_of(table(), poisoned, {.mask = mask}, 2);
    EXPECT_TRUE(same_bits(found.entropy, clean.entropy)) << mask.description();
    EXPECT_TRUE(same_bits(found.top_weights, clean.top_weights)) << mask.description();
    EXPECT_TRUE(same_bits(found.key_mass, clean.key_mass)) << mask.description();
    EXPECT_TRUE(same_bits(weights_of(table(), in, rows, {.mask = mask}),
                          weights_of(table(), poisoned, rows, {.mask = mask})))
        << mask.description();
  }
}

// Heads share panels: hidden numbers of one do not affect the other.
TEST_P(StatisticsRules, NaNStaysInTheRowsAndKeysThatSeeIt) {
  Inputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 40, .kv_len = 40, .head_dim = 16});
  const Mask irregular = Mask::where([](int, int, int q, int k) { return k <= q; });
  for (const Mask& mask : {causal(), irregular}) {
    for (const float broken : {kNaN, kInfinity}) {
      in.query(0, 1, 10, 0) = broken;
      const auto found = statistics_of(table(), in, {.mask = mask}, 1);
      const auto weights = weights_of(table(), in, all_rows(in.query.shape()), {.mask = mask});
      for (std::int64_t q = 0; q < 40; ++q) {
        for (std::int64_t h = 0; h < 2; ++h) {
          const bool is_broken = h == 1 && q == 10;
          EXPECT_EQ(std::isnan(found.entropy(0, h, q)), is_broken);
          EXPECT_EQ(std::isnan(found.max_weight(0, h, q)), is_broken);
          EXPECT_EQ(std::isnan(found.top_weights(0, h, q, 0)), is_broken);
          EXPECT_EQ(found.max_key(0, h, q) == -1, is_broken);
          EXPECT_EQ(found.top_keys(0, h, q, 0) == -1, is_broken);
        }
      }
      for (std::int64_t k = 0; k < 40; ++k) {
        EXPECT_FALSE(std::isnan(found.key_mass(0, 0, k)));
        EXPECT_TRUE(k <= 10 || !std::isnan(found.key_mass(0, 1, k)));
        EXPECT_TRUE(k <= 10 || weights(50, k) == 0);
        EXPECT_FALSE(std::isnan(weights(49, k)));
      }
      const auto row = weights.elements().subspan(50 * 40, 11);
      EXPECT_TRUE(std::any_of(row.begin(), row.end(), [](float w) { return std::isnan(w); }));
    }
  }
}

// One non-finite score among finite ones.
TEST_P(StatisticsRules, OneNaNScoreBreaksTheRow) {
  for (const float sign : {1.0F, -1.0F}) {
    Inputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 300, .kv_len = 300, .head_dim = 4});
    in.key(0, 0, 200, 1) = std::copysign(kNaN, sign);
    const auto found = statistics_of(table(), in, {.mask = causal()}, 1);
    const auto weights = weights_of(table(), in, all_rows(in.query.shape()), {.mask = causal()});
    for (std::int64_t q = 0; q < 300; ++q) {
      EXPECT_EQ(std::isnan(found.entropy(0, 1, q)), q >= 200) << q;
      EXPECT_EQ(std::isfinite(found.lse(0, 1, q)), q < 200) << q;
      EXPECT_EQ(found.top_keys(0, 1, q, 0) == -1, q >= 200) << q;
      for (const std::int64_t k : {0, 199, 200, 201}) {
        EXPECT_EQ(std::isnan(weights(q, k)), q >= 200 && k <= q) << q << " sees " << k;
      }
    }
  }
}

TEST_P(StatisticsRules, SameBitsForAnyNumberOfThreads) {
  const Inputs in(
      {.batch = 2, .num_heads = 6, .num_kv_heads = 3, .q_len = 500, .kv_len = 1100, .head_dim = 16},
      3);
  const AttentionOptions options{.mask = causal_bottom_right()};
  std::vector<AttentionRow> rows;
  for (std::int64_t i = 0; i < 700; ++i) rows.push_back({i % 2, i * 5 % 6, i * 37 % 500});
  set_num_threads(1);
  const auto one = statistics_of(table(), in, options, 3);
  const auto one_weights = weights_of(table(), in, rows, options);
  for (const int threads : {2, 7}) {
    set_num_threads(threads);
    const auto many = statistics_of(table(), in, options, 3);
    EXPECT_TRUE(same_bits(one.lse, many.lse)) << threads;
    EXPECT_TRUE(same_bits(one.entropy, many.entropy)) << threads;
    EXPECT_TRUE(same_bits(one.max_weight, many.max_weight)) << threads;
    EXPECT_TRUE(same_bits(one.max_key, many.max_key)) << threads;
    EXPECT_TRUE(same_bits(one.top_weights, many.top_weights)) << threads;
    EXPECT_TRUE(same_bits(one.top_keys, many.top_keys)) << threads;
    EXPECT_TRUE(same_bits(one.key_mass, many.key_mass)) << threads;
    EXPECT_TRUE(same_bits(one_weights, weights_of(table(), in, rows, options))) << threads;
  }
  set_num_threads(0);
}

TEST_P(StatisticsRules, SameBitsWhateverTheNeighbours) {
  const Inputs in({.batch = 3, .num_heads = 4, .num_kv_heads = 2, .q_len = 250, .kv_len = 300}, 3);
  const AttentionOptions options{.mask = sliding_window(70, 9, Alignment::top_left())};
  const auto all = statistics_of(table(), in, options, 3);
  const FloatView key = in.key.view().slice(0, 1, 2);
  const auto entry = statistics_of<float>(table(), in.query.view().slice(0, 1, 2), key, options, 3);
  EXPECT_TRUE(same_bits(entry.entropy, to_tensor(all.entropy.view().slice(0, 1, 2))));
  EXPECT_TRUE(same_bits(entry.key_mass, to_tensor(all.key_mass.view().slice(0, 1, 2))));
  // Some queries of one group of heads.
  AttentionOptions later = options;
  later.query_offset = 101;
  const FloatView some = in.query.view().slice(0, 1, 2).slice(1, 2, 4).slice(2, 101, 120);
  const auto rows = statistics_of<float>(table(), some, key.slice(1, 1, 2), later, 3);
  const auto of_all = [](const auto& tensor) {
    return to_tensor(tensor.view().slice(0, 1, 2).slice(1, 2, 4).slice(2, 101, 120));
  };
  EXPECT_TRUE(same_bits(rows.lse, of_all(all.lse)));
  EXPECT_TRUE(same_bits(rows.entropy, of_all(all.entropy)));
  EXPECT_TRUE(same_bits(rows.top_weights, of_all(all.top_weights)));
  EXPECT_TRUE(same_bits(rows.top_keys, of_all(all.top_keys)));
}

// A row's weights do not depend on the other requested rows or their order.
TEST_P(StatisticsRules, ChosenRowsHaveTheBitsOfAllRows) {
  const Inputs in(
      {.batch = 2, .num_heads = 4, .num_kv_heads = 2, .q_len = 60, .kv_len = 200, .head_dim = 16},
      2);
  AttentionOptions capped{.mask = causal_bottom_right(), .softcap = 3};
  for (const AttentionOptions& options : {AttentionOptions{}, capped}) {
    const auto all = weights_of(table(), in, all_rows(in.query.shape()), options);
    const std::vector<AttentionRow> rows{{1, 3, 59}, {0, 0, 0}, {1, 2, 7}, {0, 3, 31},
                                         {1, 3, 59}, {0, 1, 2}, {1, 0, 58}};
    const auto some = weights_of(table(), in, rows, options);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      const std::int64_t place = (rows[i].batch * 4 + rows[i].head) * 60 + rows[i].query;
      EXPECT_TRUE(
          same_bits(to_tensor(some.view().select(0, row)), to_tensor(all.view().select(0, place))));
      const auto alone = weights_of(table(), in, {&rows[i], 1}, options);
      EXPECT_TRUE(same_bits(alone, to_tensor(some.view().slice(0, row, row + 1))));
    }
  }
  EXPECT_EQ(weights_of(table(), in, {}, {}).shape(), (Shape{0, 200}));
}

TEST_P(StatisticsRules, ReadsStridedViews) {
  const Inputs in(
      {.batch = 2, .num_heads = 4, .num_kv_heads = 4, .q_len = 60, .kv_len = 140, .head_dim = 64});
  const auto stored = [](FloatView view) { return to_tensor(view.permute({0, 2, 1, 3})); };
  const auto query = stored(in.query);
  const auto key = stored(in.key);
  const FloatView views[] = {query.view().permute({0, 2, 1, 3}), key.view().permute({0, 2, 1, 3})};
  const auto found = statistics_of<float>(table(), views[0], views[1], {}, 2);
  const auto expected = statistics_of(table(), in, {}, 2);
  EXPECT_TRUE(same_bits(found.entropy, expected.entropy));
  EXPECT_TRUE(same_bits(found.key_mass, expected.key_mass));
  EXPECT_TRUE(same_bits(found.top_keys, expected.top_keys));
}

// So many heads that rows of keys have a large stride and are staged.
TEST_P(StatisticsRules, ReadsStagedViews) {
  const Inputs in(
      {.num_heads = 10, .num_kv_heads = 10, .q_len = 70, .kv_len = 140, .head_dim = 64});
  const auto key = to_tensor(in.key.view().permute({0, 2, 1, 3}));
  const FloatView view = key.view().permute({0, 2, 1, 3});
  ASSERT_TRUE(WeightJob<float>(table(), in.query, view, {}).pass.schedule().stages_key);
  EXPECT_TRUE(same_bits(statistics_of<float>(table(), in.query, view, {}).key_mass,
                        statistics_of(table(), in, {}).key_mass));
}

template <class Half>
void expect_halves_are_floats(const kernels::KernelTable& table) {
  const Inputs in(
      {.batch = 2, .num_heads = 4, .num_kv_heads = 2, .q_len = 50, .kv_len = 200, .head_dim = 24});
  const auto narrow = [](const Tensor<float>& tensor) {
    Tensor<Half> result(tensor.shape());
    std::transform(tensor.elements().begin(), tensor.elements().end(), result.elements().begin(),
                   [](float element) { return Half(element); });
    return result;
  };
  const auto widen = [](const Tensor<Half>& tensor) {
    Tensor<float> result(tensor.shape());
    std::copy(tensor.elements().begin(), tensor.elements().end(), result.elements().begin());
    return result;
  };
  const Tensor<Half> query = narrow(in.query);
  const Tensor<Half> key = narrow(in.key);
  const Tensor<float> wide[] = {widen(query), widen(key)};
  const AttentionOptions options{.mask = causal_bottom_right()};
  const auto found = statistics_of<Half>(table, query, key, options, 2);
  const auto expected = statistics_of<float>(table, wide[0], wide[1], options, 2);
  EXPECT_TRUE(same_bits(found.entropy, expected.entropy));
  EXPECT_TRUE(same_bits(found.top_weights, expected.top_weights));
  EXPECT_TRUE(same_bits(found.key_mass, expected.key_mass));
  const auto rows = all_rows(query.shape());
  EXPECT_TRUE(same_bits(weights_of<Half>(table, query, key, rows, options),
                        weights_of<float>(table, wide[0], wide[1], rows, options)));
}

TEST_P(StatisticsRules, HalvesAreTheFloatsTheyStandFor) {
  expect_halves_are_floats<Float16>(table());
  expect_halves_are_floats<BFloat16>(table());
}

}  // namespace
}  // namespace heed
