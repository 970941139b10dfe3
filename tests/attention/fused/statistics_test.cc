#include "attention/fused/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "attention/fused/weight_block.h"
#include "heed/parallel.h"
#include "heed/reference.h"
#include "support/exact.h"
#include "support/tensors.h"

namespace heed {
namespace {

using testing::Each;
using testing_support::exactly;
using testing_support::ExactOptions;
using testing_support::inaccuracy;
using testing_support::normal;
using testing_support::relative_inaccuracy;
using testing_support::same_bits;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Inputs {
  Tensor<float> query;
  Tensor<float> key;

  // Standard normal numbers; the queries times `magnitude`.
  Inputs(const Shape& query_shape, const Shape& key_shape, float magnitude = 1)
      : query(normal<float>(query_shape, 1)), key(normal<float>(key_shape, 2)) {
    for (float& element : query.elements()) element *= magnitude;
  }
};

template <class T>
struct Looked {
  AttentionShapes shapes;
  Terms<float> terms;
  fused::Schedule schedule;
  fused::Job job;

  Looked(const kernels::KernelTable& table, TensorView<const T> query, TensorView<const T> key,
         const AttentionOptions& options)
      : shapes(check_shapes("test", query, key)),
        terms(check_weight_terms("test", shapes, options)),
        schedule(fused::make_weight_schedule(table, terms, shapes, num_threads())) {
    job.terms = &terms;
    job.query = rows_of(query);
    job.key = rows_of(key);
  }
};

template <class T>
AttentionStatistics statistics_of(const kernels::KernelTable& table, TensorView<const T> query,
                                  TensorView<const T> key, const AttentionOptions& options,
                                  std::int64_t top_k = 0) {
  const Looked<T> looked(table, query, key, options);
  auto result = make_statistics<float>(looked.terms.shape, top_k);
  fused::statistics_of(looked.job, looked.schedule, result);
  return result;
}

template <class T>
Tensor<float> weights_of(const kernels::KernelTable& table, TensorView<const T> query,
                         TensorView<const T> key, std::span<const AttentionRow> rows,
                         const AttentionOptions& options) {
  const Looked<T> looked(table, query, key, options);
  Tensor<float> result({static_cast<std::int64_t>(rows.size()), key.extent(2)});
  fused::weights_of_rows(looked.job, looked.schedule, rows, result);
  return result;
}

// Every row there is, in the order of the matrix.
std::vector<AttentionRow> all_rows(const Shape& query) {
  std::vector<AttentionRow> rows;
  for (std::int64_t b = 0; b < query[0]; ++b)
    for (std::int64_t h = 0; h < query[1]; ++h)
      for (std::int64_t q = 0; q < query[2]; ++q) rows.push_back({b, h, q});
  return rows;
}

// The largest weights and their keys are exactly what sorting each row's weights gives.
void expect_largest(const AttentionStatistics& found, const Tensor<float>& weights) {
  const std::int64_t kv_len = weights.extent(1);
  const std::int64_t top_k = found.top_keys.extent(-1);
  for (std::int64_t row = 0; row < weights.extent(0); ++row) {
    std::vector<std::int64_t> keys(static_cast<std::size_t>(kv_len));
    std::iota(keys.begin(), keys.end(), 0);
    std::stable_sort(keys.begin(), keys.end(), [&](std::int64_t a, std::int64_t b) {
      return weights(row, a) > weights(row, b);
    });
    keys.resize(static_cast<std::size_t>(std::max<std::int64_t>(top_k, 1)), -1);
    for (std::int64_t i = 0; i < std::max<std::int64_t>(top_k, 1); ++i) {
      std::int64_t key = keys[static_cast<std::size_t>(i)];
      if (key >= 0 && weights(row, key) == 0) key = -1;
      const float weight = key < 0 ? 0 : weights(row, key);
      if (i == 0) {
        ASSERT_EQ(found.max_key.data()[row], key) << "row " << row;
        ASSERT_EQ(found.max_weight.data()[row], weight) << "row " << row;
      }
      if (i < top_k) {
        ASSERT_EQ(found.top_keys.data()[row * top_k + i], key) << "row " << row << ", " << i;
        ASSERT_EQ(found.top_weights.data()[row * top_k + i], weight) << "row " << row;
      }
    }
  }
}

void expect_accurate(const kernels::KernelTable& table, const Inputs& in,
                     const AttentionOptions& options, const std::string& what,
                     std::int64_t top_k = 3) {
  const std::string where = what + " on " + table.name;
  const ExactOptions exact_options(options);
  const Tensor<double> exact_inputs[] = {exactly(in.query.view()), exactly(in.key.view())};
  const auto rows = all_rows(in.query.shape());

  const auto weights = weights_of<float>(table, in.query, in.key, rows, options);
  const auto plain_weights = reference::attention_weights(in.query, in.key, rows, options);
  const auto exact_weights =
      reference::attention_weights(exact_inputs[0], exact_inputs[1], rows, *exact_options);
  EXPECT_EQ(inaccuracy("weights", weights, plain_weights, exact_weights), "") << where;
  EXPECT_EQ(relative_inaccuracy("weights", weights, plain_weights, exact_weights), "") << where;

  const auto found = statistics_of<float>(table, in.query, in.key, options, top_k);
  const auto plain = reference::attention_statistics(in.query, in.key, options);
  const auto exact =
      reference::attention_statistics(exact_inputs[0], exact_inputs[1], *exact_options);
  EXPECT_EQ(inaccuracy("lse", found.lse, plain.lse, exact.lse), "") << where;
  EXPECT_EQ(inaccuracy("entropy", found.entropy, plain.entropy, exact.entropy), "") << where;
  EXPECT_EQ(inaccuracy("max_weight", found.max_weight, plain.max_weight, exact.max_weight), "")
      << where;
  EXPECT_EQ(inaccuracy("key_mass", found.key_mass, plain.key_mass, exact.key_mass), "") << where;
  EXPECT_EQ(relative_inaccuracy("key_mass", found.key_mass, plain.key_mass, exact.key_mass), "")
      << where;
  expect_largest(found, weights);
}

class Looking : public testing::TestWithParam<const kernels::KernelTable*> {
 protected:
  static const kernels::KernelTable& table() { return *GetParam(); }
};
INSTANTIATE_TEST_SUITE_P(Fused, Looking, testing::ValuesIn(kernels::supported_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

TEST_P(Looking, AwkwardLengths) {
  for (const std::int64_t q_len : {1, 2, 7, 15, 17, 47, 49, 97, 193}) {
    for (const std::int64_t kv_len : {std::int64_t{1}, std::int64_t{127}, std::int64_t{128},
                                      std::int64_t{129}, std::int64_t{1031}, q_len}) {
      const Inputs in({1, 1, q_len, 8}, {1, 1, kv_len, 8});
      const std::string what = std::to_string(q_len) + "x" + std::to_string(kv_len);
      expect_accurate(table(), in, {}, what);
      expect_accurate(table(), in, {.mask = causal_bottom_right()}, what + " bottom right");
    }
  }
}

TEST_P(Looking, AwkwardHeadSizes) {
  for (const std::int64_t head_dim : {0, 1, 3, 8, 31, 64, 129}) {
    const Inputs in({1, 2, 50, head_dim}, {1, 2, 70, head_dim});
    expect_accurate(table(), in, {}, std::to_string(head_dim));
  }
}

// Few queries, so that the heads of a group share panels; and many, so that they do not.
TEST_P(Looking, GroupedQueries) {
  for (const std::int64_t q_len : {1, 2, 5, 33, 100}) {
    for (const std::int64_t kv_heads : {1, 2, 3, 6}) {
      const Inputs in({2, 6, q_len, 16}, {2, kv_heads, 140, 16});
      const std::string what = std::to_string(q_len) + " queries of " + std::to_string(kv_heads);
      expect_accurate(table(), in, {.mask = causal_bottom_right()}, what);
    }
  }
}

// Several segments of queries.
TEST_P(Looking, ManyQueries) {
  const Inputs in({1, 2, 1700, 8}, {1, 2, 150, 8});
  expect_accurate(table(), in, {}, "many queries");
}

struct Option {
  std::string name;
  std::function<void(AttentionOptions&)> set;
};

// For 4 heads, 100 queries and 150 keys.
std::vector<Option> all_options() {
  static const Tensor<float> bias = normal<float>({4, 1, 150}, 9);
  static const Tensor<float> sinks = normal<float>({4}, 8);
  static const Tensor<bool> flags = [] {
    Tensor<bool> tensor(Shape{100, 150});
    for (std::int64_t i = 0; i < tensor.num_elements(); ++i) tensor.data()[i] = i * 7919 % 5 != 0;
    return tensor;
  }();
  static const Tensor<float> added = [] {
    Tensor<float> tensor = normal<float>({2, 1, 1, 150}, 7);
    for (std::int64_t i = 0; i < tensor.num_elements(); i += 3) tensor.data()[i] = -kInfinity;
    return tensor;
  }();
  const auto mask = [](const Mask& part) {
    return [part](AttentionOptions& options) { options.mask = options.mask & part; };
  };
  return {
      {"causal", mask(causal_bottom_right())},
      {"window", mask(sliding_window(20, 3, Alignment::top_left()))},
      {"prefix", mask(prefix(60, Alignment::top_left()))},
      {"lengths", mask(key_lengths({150, 37}))},
      {"documents", mask(documents({0, 13, 64, 64, 150}))},
      {"allow", mask(Mask::allow(flags))},
      {"block", mask(Mask::block(flags))},
      {"additive", mask(Mask::additive(added))},
      {"where",
       mask(Mask::where([](int b, int h, int q, int k) { return (b + h + q + k) % 3 != 0; }))},
      {"bias", [](AttentionOptions& options) { options.bias = bias; }},
      {"sinks", [](AttentionOptions& options) { options.sinks = sinks; }},
      {"scale", [](AttentionOptions& options) { options.scale = 0.7F; }},
      {"softcap", [](AttentionOptions& options) { options.softcap = 2; }},
      {"dropout",
       [](AttentionOptions& options) { options.dropout = {.probability = 0.3F, .seed = 5}; }},
      {"offset",
       [](AttentionOptions& options) {
         options.query_offset = 50;
         options.mask = options.mask & causal(0);
       }},
      {"score_mod",
       [](AttentionOptions& options) {
         options.score_mod = [](auto score, int b, int h, int q, int k) {
           return score * (1 + b) - 0.01F * (h + 1) * heed::abs(static_cast<float>(q - k));
         };
       }},
  };
}

TEST_P(Looking, EveryOptionAlone) {
  const Inputs in({2, 4, 100, 12}, {2, 2, 150, 12});
  for (const Option& option : all_options()) {
    AttentionOptions asked;
    option.set(asked);
    expect_accurate(table(), in, asked, option.name, 5);
  }
}

TEST_P(Looking, LargeScores) {
  for (const float magnitude : {10.0F, 25.0F, 80.0F}) {
    const Inputs in({1, 2, 60, 32}, {1, 2, 400, 32}, magnitude);
    expect_accurate(table(), in, {}, std::to_string(magnitude));
    const auto found = statistics_of<float>(table(), in.query, in.key, {});
    EXPECT_THAT(found.max_weight.elements(), Each(testing::Le(1)));
    EXPECT_THAT(found.entropy.elements(), Each(testing::Ge(0)));
  }
}

TEST_P(Looking, ManyKeys) {
  const Inputs in({1, 1, 20, 16}, {1, 1, 3001, 16}, 3);
  expect_accurate(table(), in, {}, "chunks", 40);
  expect_accurate(table(), in, {.mask = sliding_window(1500, 0, Alignment::bottom_right())},
                  "window over chunks");
}

// Every key takes the first place, or none does after the first.
TEST_P(Looking, WeightsThatRiseOrFall) {
  for (const float slope : {0.01F, -0.01F, 1.0F, -1.0F}) {
    AttentionOptions options;
    options.score_mod = [slope](auto score, int, int, int, int k) {
      return 0 * score + slope * static_cast<float>(k);
    };
    const Inputs in({1, 1, 19, 4}, {1, 1, 300, 4});
    for (const std::int64_t top_k : {0, 1, 7, 300, 301}) {
      expect_accurate(table(), in, options, std::to_string(slope), top_k);
    }
  }
}

TEST_P(Looking, EqualWeightsGoToTheFirstKeys) {
  Inputs in({1, 1, 20, 4}, {1, 1, 300, 4}, 0);
  const auto found = statistics_of<float>(table(), in.query, in.key, {}, 130);
  for (std::int64_t q = 0; q < 20; ++q) {
    for (std::int64_t i = 0; i < 130; ++i) ASSERT_EQ(found.top_keys(0, 0, q, i), i);
    EXPECT_NEAR(found.entropy(0, 0, q), std::log(300.0), 4 * 0x1p-24 * std::log(300.0));
  }
}

TEST_P(Looking, ASinkIsMissingMass) {
  const Inputs in({1, 2, 30, 8}, {1, 2, 60, 8});
  Tensor<float> sinks({2}, {2.0F, -kInfinity});
  AttentionOptions options;
  options.sinks = sinks;
  const auto found = statistics_of<float>(table(), in.query, in.key, options);
  double mass[2] = {0, 0};
  double sink_shares = 0;
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t k = 0; k < 60; ++k) mass[h] += found.key_mass(0, h, k);
  }
  for (std::int64_t q = 0; q < 30; ++q) sink_shares += std::exp(2.0 - found.lse(0, 0, q));
  EXPECT_NEAR(mass[0], 30 - sink_shares, 1e-5);
  EXPECT_NEAR(mass[1], 30, 1e-5);
}

TEST_P(Looking, RowsThatSeeNothing) {
  const Inputs in({1, 2, 70, 8}, {1, 2, 200, 8});
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 70; ++q) {
    ranges.push_back(q % 3 == 0 ? RowRange{5, 5} : RowRange{q, q + 100});
  }
  const Tensor<float> sinks({2}, {1.0F, -kInfinity});
  for (AttentionOptions options : {AttentionOptions{}, AttentionOptions{.sinks = sinks.view()}}) {
    options.mask = Mask::rows(ranges);
    expect_accurate(table(), in, options, "rows");
    const auto found = statistics_of<float>(table(), in.query, in.key, options, 2);
    for (std::int64_t q = 0; q < 70; q += 3) {
      EXPECT_EQ(found.entropy(0, 0, q), 0);
      EXPECT_FALSE(std::signbit(found.entropy(0, 0, q)));
      EXPECT_EQ(found.max_weight(0, 0, q), 0);
      EXPECT_EQ(found.max_key(0, 0, q), -1);
      EXPECT_EQ(found.top_keys(0, 0, q, 1), -1);
      EXPECT_EQ(found.lse(0, 1, q), -kInfinity);
    }
  }
  // Nobody sees anything.
  const AttentionOptions none{.mask = Mask::where([](int, int, int, int) { return false; })};
  const auto nothing = statistics_of<float>(table(), in.query, in.key, none, 1);
  EXPECT_THAT(nothing.key_mass.elements(), Each(0));
  EXPECT_THAT(nothing.max_key.elements(), Each(-1));
  EXPECT_THAT(
      weights_of<float>(table(), in.query, in.key, all_rows({1, 2, 70, 8}), none).elements(),
      Each(0));
}

TEST_P(Looking, EmptySizes) {
  const auto look = [](const Shape& query, const Shape& key) {
    const Inputs in(query, key);
    expect_accurate(table(), in, {}, to_string(query) + " and " + to_string(key), 2);
  };
  look({0, 1, 5, 4}, {0, 1, 5, 4});
  look({1, 0, 5, 4}, {1, 0, 5, 4});
  look({1, 1, 0, 4}, {1, 1, 5, 4});
  look({1, 1, 5, 4}, {1, 1, 0, 4});
  look({2, 2, 5, 0}, {2, 1, 3, 0});
}

TEST_P(Looking, HiddenNaNChangesNoBit) {
  const Inputs in({1, 2, 90, 24}, {1, 1, 300, 24});
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
    const auto clean = statistics_of<float>(table(), in.query, in.key, {.mask = mask}, 2);
    const auto found =
        statistics_of<float>(table(), poisoned.query, poisoned.key, {.mask = mask}, 2);
    EXPECT_TRUE(same_bits(found.entropy, clean.entropy)) << mask.description();
    EXPECT_TRUE(same_bits(found.top_weights, clean.top_weights)) << mask.description();
    EXPECT_TRUE(same_bits(found.key_mass, clean.key_mass)) << mask.description();
    EXPECT_TRUE(
        same_bits(weights_of<float>(table(), in.query, in.key, rows, {.mask = mask}),
                  weights_of<float>(table(), poisoned.query, poisoned.key, rows, {.mask = mask})))
        << mask.description();
  }
}

// Heads share panels here: what one sees does not reach the other.
TEST_P(Looking, NaNStaysInTheRowsAndKeysThatSeeIt) {
  Inputs in({1, 2, 40, 16}, {1, 1, 40, 16});
  const Mask irregular = Mask::where([](int, int, int q, int k) { return k <= q; });
  for (const Mask& mask : {causal(), irregular}) {
    for (const float broken : {kNaN, kInfinity}) {
      in.query(0, 1, 10, 0) = broken;
      const auto found = statistics_of<float>(table(), in.query, in.key, {.mask = mask}, 1);
      const auto weights =
          weights_of<float>(table(), in.query, in.key, all_rows(in.query.shape()), {.mask = mask});
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

TEST_P(Looking, SameBitsForAnyNumberOfThreads) {
  const Inputs in({2, 6, 500, 16}, {2, 3, 1100, 16}, 3);
  const AttentionOptions options{.mask = causal_bottom_right()};
  std::vector<AttentionRow> rows;
  for (std::int64_t i = 0; i < 700; ++i) rows.push_back({i % 2, i * 5 % 6, i * 37 % 500});
  set_num_threads(1);
  const auto one = statistics_of<float>(table(), in.query, in.key, options, 3);
  const auto one_weights = weights_of<float>(table(), in.query, in.key, rows, options);
  for (const int threads : {2, 7}) {
    set_num_threads(threads);
    const auto many = statistics_of<float>(table(), in.query, in.key, options, 3);
    EXPECT_TRUE(same_bits(one.lse, many.lse)) << threads;
    EXPECT_TRUE(same_bits(one.entropy, many.entropy)) << threads;
    EXPECT_TRUE(same_bits(one.max_weight, many.max_weight)) << threads;
    EXPECT_TRUE(same_bits(one.max_key, many.max_key)) << threads;
    EXPECT_TRUE(same_bits(one.top_weights, many.top_weights)) << threads;
    EXPECT_TRUE(same_bits(one.top_keys, many.top_keys)) << threads;
    EXPECT_TRUE(same_bits(one.key_mass, many.key_mass)) << threads;
    EXPECT_TRUE(same_bits(one_weights, weights_of<float>(table(), in.query, in.key, rows, options)))
        << threads;
  }
  set_num_threads(0);
}

// A row's weights do not depend on which others are asked for, or in which order.
TEST_P(Looking, ChosenRowsHaveTheBitsOfAllRows) {
  const Inputs in({2, 4, 60, 16}, {2, 2, 200, 16}, 2);
  AttentionOptions capped{.mask = causal_bottom_right(), .softcap = 3};
  for (const AttentionOptions& options : {AttentionOptions{}, capped}) {
    const auto all =
        weights_of<float>(table(), in.query, in.key, all_rows(in.query.shape()), options);
    const std::vector<AttentionRow> rows{{1, 3, 59}, {0, 0, 0}, {1, 2, 7}, {0, 3, 31},
                                         {1, 3, 59}, {0, 1, 2}, {1, 0, 58}};
    const auto some = weights_of<float>(table(), in.query, in.key, rows, options);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const auto row = static_cast<std::int64_t>(i);
      const std::int64_t place = (rows[i].batch * 4 + rows[i].head) * 60 + rows[i].query;
      EXPECT_TRUE(
          same_bits(to_tensor(some.view().select(0, row)), to_tensor(all.view().select(0, place))));
      const auto alone = weights_of<float>(table(), in.query, in.key, {&rows[i], 1}, options);
      EXPECT_TRUE(same_bits(alone, to_tensor(some.view().slice(0, row, row + 1))));
    }
  }
  EXPECT_EQ(weights_of<float>(table(), in.query, in.key, {}, {}).shape(), (Shape{0, 200}));
}

TEST_P(Looking, ReadsStridedViews) {
  const Inputs in({2, 4, 60, 64}, {2, 4, 140, 64});
  const auto stored = [](FloatView view) { return to_tensor(view.permute({0, 2, 1, 3})); };
  const auto query = stored(in.query);
  const auto key = stored(in.key);
  const auto views = {query.view().permute({0, 2, 1, 3}), key.view().permute({0, 2, 1, 3})};
  const auto found = statistics_of<float>(table(), *views.begin(), *(views.begin() + 1), {}, 2);
  const auto expected = statistics_of<float>(table(), in.query, in.key, {}, 2);
  EXPECT_TRUE(same_bits(found.entropy, expected.entropy));
  EXPECT_TRUE(same_bits(found.key_mass, expected.key_mass));
  EXPECT_TRUE(same_bits(found.top_keys, expected.top_keys));
}

// Enough heads that rows of keys lie far apart and are staged.
TEST_P(Looking, ReadsStagedViews) {
  const Inputs in({1, 10, 70, 64}, {1, 10, 140, 64});
  const auto key = to_tensor(in.key.view().permute({0, 2, 1, 3}));
  const auto view = key.view().permute({0, 2, 1, 3});
  const Looked<float> looked(table(), in.query, FloatView(view), {});
  ASSERT_TRUE(looked.schedule.stages_key);
  EXPECT_TRUE(same_bits(statistics_of<float>(table(), in.query, view, {}).key_mass,
                        statistics_of<float>(table(), in.query, in.key, {}).key_mass));
}

template <class Half>
void expect_halves_are_floats(const kernels::KernelTable& table) {
  const Inputs in({2, 4, 50, 24}, {2, 2, 200, 24});
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

TEST_P(Looking, HalvesAreTheFloatsTheyStandFor) {
  expect_halves_are_floats<Float16>(table());
  expect_halves_are_floats<BFloat16>(table());
}

}  // namespace
}  // namespace heed
