#include "support/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/engine/passes.h"
#include "support/kernel_tables.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::Each;
using testing_support::alone_and_in_pairs;
using testing_support::DrawnOptions;
using testing_support::expect_accurate_statistics;
using testing_support::Inputs;
using testing_support::Option;
using testing_support::options_where;
using testing_support::statistics_of;

using testing_support::kInfinity;

TEST(FusedStatistics, AwkwardLengths) {
  for (const std::int64_t q_len : {1, 2, 7, 15, 17, 47, 49, 97, 193}) {
    for (const std::int64_t kv_len : {std::int64_t{1}, std::int64_t{127}, std::int64_t{128},
                                      std::int64_t{129}, std::int64_t{300}, q_len}) {
      const Inputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 8});
      const std::string what = std::to_string(q_len) + "x" + std::to_string(kv_len);
      expect_accurate_statistics(in, {}, what);
      expect_accurate_statistics(in, {.mask = causal_bottom_right()}, what + " bottom right");
    }
  }
}

TEST(FusedStatistics, AwkwardHeadSizes) {
  for (const std::int64_t head_dim : {0, 1, 3, 8, 31, 64, 129}) {
    const Inputs in(
        {.num_heads = 2, .num_kv_heads = 2, .q_len = 50, .kv_len = 70, .head_dim = head_dim});
    expect_accurate_statistics(in, {}, std::to_string(head_dim));
  }
}

// With few queries the heads of a group share panels; with many they do not.
TEST(FusedStatistics, GroupedQueries) {
  for (const std::int64_t q_len : {1, 2, 5, 33, 100}) {
    for (const std::int64_t kv_heads : {1, 2, 3, 6}) {
      const Inputs in(
          {.batch = 2, .num_heads = 6, .num_kv_heads = kv_heads, .q_len = q_len, .kv_len = 140});
      const std::string what = std::to_string(q_len) + " queries of " + std::to_string(kv_heads);
      expect_accurate_statistics(in, {.mask = causal_bottom_right()}, what);
    }
  }
}

// Several segments of queries.
TEST(FusedStatistics, ManyQueries) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = 1700, .kv_len = 150, .head_dim = 8});
  expect_accurate_statistics(in, {}, "many queries");
}

TEST(FusedStatistics, EveryOptionAlone) {
  const testing_support::Sizes sizes{
      .batch = 2, .num_heads = 4, .num_kv_heads = 2, .q_len = 100, .kv_len = 150, .head_dim = 12};
  const Inputs in(sizes);
  std::uint64_t seed = 0;
  for (const auto& chosen : alone_and_in_pairs(options_where(&Option::is_option))) {
    const DrawnOptions<float> options(sizes, chosen, ++seed);
    expect_accurate_statistics(in, *options, to_string(chosen), 5);
  }
}

TEST(FusedStatistics, RowsThatSeeNothing) {
  const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = 70, .kv_len = 200, .head_dim = 8});
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 70; ++q) {
    ranges.push_back(q % 3 == 0 ? RowRange{5, 5} : RowRange{q, q + 100});
  }
  const Tensor<float> sinks({2}, {1.0F, -kInfinity});
  AttentionOptions options{.mask = Mask::rows(ranges)};
  expect_accurate_statistics(in, options, "rows");
  options.sinks = sinks;
  expect_accurate_statistics(in, options, "rows and sinks");
}

TEST(FusedStatistics, LargeScores) {
  for (const float magnitude : {10.0F, 25.0F, 80.0F}) {
    const Inputs in({.num_heads = 2, .num_kv_heads = 2, .q_len = 60, .kv_len = 400, .head_dim = 32},
                    magnitude);
    expect_accurate_statistics(in, {}, std::to_string(magnitude));
    for (const auto* table : testing_support::kernels_of_numbers()) {
      const auto found = statistics_of(*table, in);
      EXPECT_THAT(found.max_weight.elements(), Each(testing::Le(1)));
      EXPECT_THAT(found.entropy.elements(), Each(testing::Ge(0)));
    }
  }
}

TEST(FusedStatistics, ManyKeys) {
  const Inputs in({.q_len = 20, .kv_len = 3001}, 3);
  expect_accurate_statistics(in, {}, "many keys", 40);
  expect_accurate_statistics(in, {.mask = sliding_window(1500, 0, Alignment::bottom_right())},
                             "a window of many keys");
}

// Weights rise, so that each key becomes the largest, or fall, so that the first stays the largest.
TEST(FusedStatistics, WeightsThatRiseOrFall) {
  for (const float slope : {0.01F, -0.01F, 1.0F, -1.0F}) {
    AttentionOptions options;
    options.score_mod = [slope](auto score, int, int, int, int k) {
      return 0 * score + slope * static_cast<float>(k);
    };
    const Inputs in({.q_len = 19, .kv_len = 300, .head_dim = 4});
    for (const std::int64_t top_k : {0, 1, 7, 300, 301}) {
      expect_accurate_statistics(in, options, std::to_string(slope), top_k);
    }
  }
}

TEST(FusedStatistics, EmptySizes) {
  const auto look = [](const testing_support::Sizes& sizes) {
    expect_accurate_statistics(Inputs(sizes), {}, "an empty size", 2);
  };
  look({.batch = 0, .q_len = 5, .kv_len = 5});
  look({.num_heads = 0, .num_kv_heads = 0, .q_len = 5, .kv_len = 5});
  look({.num_heads = 0, .num_kv_heads = 2, .q_len = 5, .kv_len = 5});
  look({.q_len = 0, .kv_len = 5});
  look({.q_len = 5, .kv_len = 0});
  look({.batch = 2, .num_heads = 2, .q_len = 5, .kv_len = 3, .head_dim = 0});
}

}  // namespace
}  // namespace heed
