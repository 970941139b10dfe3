#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/engine/passes.h"
#include "heed/attention/position.h"
#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::alone_and_in_pairs;
using testing_support::DrawnOptions;
using testing_support::expect_accurate;
using testing_support::Inputs;
using testing_support::normal;
using testing_support::Option;
using testing_support::options_where;
using testing_support::run;
using testing_support::run_on_threads;
using testing_support::same_bits;
using testing_support::TargetTest;

using testing_support::kInfinity;

class OnEveryTarget : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(OnEveryTarget);

TEST_P(OnEveryTarget, AwkwardLengths) {
  const std::int64_t lengths[] = {1, 2, 7, 15, 17, 47, 49, 127, 128, 129, 193, 1025};
  for (const std::int64_t q_len : lengths) {
    for (const std::int64_t kv_len :
         {std::int64_t{1}, std::int64_t{127}, std::int64_t{129}, q_len}) {
      const Inputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 8, .value_dim = 5});
      const std::string what = std::to_string(q_len) + "x" + std::to_string(kv_len);
      expect_accurate(table(), in, {}, what);
      expect_accurate(table(), in, {.mask = causal_bottom_right()}, what + " bottom right");
      expect_accurate(table(), in, {.mask = causal_top_left()}, what + " top left");
    }
  }
}

TEST_P(OnEveryTarget, AwkwardHeadSizes) {
  for (const std::int64_t head_dim : {0, 1, 2, 3, 5, 8, 15, 31, 64, 80, 96, 128, 255, 256}) {
    for (const std::int64_t value_dim : {std::int64_t{1}, std::int64_t{7}, head_dim}) {
      const Inputs in({.num_heads = 2,
                       .num_kv_heads = 2,
                       .q_len = 50,
                       .kv_len = 70,
                       .head_dim = head_dim,
                       .value_dim = value_dim});
      expect_accurate(table(), in, {}, std::to_string(head_dim) + "/" + std::to_string(value_dim));
    }
  }
}

TEST_P(OnEveryTarget, GroupedQueries) {
  for (const std::int64_t kv_heads : {1, 2, 4, 8}) {
    const Inputs in(
        {.batch = 2, .num_heads = 8, .num_kv_heads = kv_heads, .q_len = 33, .kv_len = 140});
    expect_accurate(table(), in, {.mask = causal_bottom_right()}, std::to_string(kv_heads));
  }
}

TEST_P(OnEveryTarget, EmptySizes) {
  EXPECT_TRUE(run(table(), Inputs({.batch = 0}), {}).out.empty());
  EXPECT_TRUE(run(table(), Inputs({.num_heads = 0, .num_kv_heads = 0}), {}).out.empty());
  EXPECT_TRUE(run(table(), Inputs({.q_len = 0}), {}).out.empty());
  EXPECT_TRUE(run(table(), Inputs({.value_dim = 0}), {}).out.empty());
  expect_accurate(table(), Inputs({.q_len = 3, .kv_len = 0}), {}, "no keys");
}

TEST_P(OnEveryTarget, EveryOptionAloneAndInPairs) {
  const testing_support::Sizes sizes{.batch = 2,
                                     .num_heads = 4,
                                     .num_kv_heads = 2,
                                     .q_len = 100,
                                     .kv_len = 150,
                                     .head_dim = 12,
                                     .value_dim = 9};
  const Inputs in(sizes);
  std::uint64_t seed = 0;
  for (const auto& chosen : alone_and_in_pairs(options_where(&Option::is_option), 3)) {
    const DrawnOptions<float> options(sizes, chosen, ++seed);
    expect_accurate(table(), in, *options, to_string(chosen));
  }
}

TEST_P(OnEveryTarget, RowsThatSeeNothing) {
  const Inputs in({.q_len = 70, .kv_len = 200});
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 70; ++q)
    ranges.push_back(q % 3 == 0 ? RowRange{5, 5} : RowRange{q, q + 100});
  const auto result = run(table(), in, {.mask = Mask::rows(ranges)});
  for (std::int64_t q = 0; q < 70; q += 3) {
    EXPECT_EQ(result.out(0, 0, q, 3), 0);
    EXPECT_EQ(result.lse(0, 0, q), -kInfinity);
  }
  expect_accurate(table(), in, {.mask = Mask::rows(ranges)}, "rows");
}

TEST_P(OnEveryTarget, SameBitsForAnyNumberOfThreads) {
  const Inputs in({.batch = 2, .num_heads = 3, .num_kv_heads = 3, .q_len = 300, .kv_len = 1100});
  set_num_threads(1);
  const auto one = run(table(), in, {.mask = causal_bottom_right()});
  for (const int threads : {2, 7}) {
    set_num_threads(threads);
    const auto many = run(table(), in, {.mask = causal_bottom_right()});
    EXPECT_TRUE(same_bits(one.out, many.out) && same_bits(one.lse, many.lse)) << threads;
  }
  set_num_threads(0);
}

TEST_P(OnEveryTarget, SameBitsWhenThreadsShareTheKeys) {
  Inputs in({.batch = 2,
             .num_heads = 4,
             .num_kv_heads = 2,
             .q_len = 13,
             .kv_len = 3500,
             .head_dim = 8,
             .value_dim = 5});
  // Only the last query sees it, under the first mask.
  in.value(0, 0, 3499, 2) = std::numeric_limits<float>::quiet_NaN();
  std::vector<AttentionOptions> all(4);
  all[0].mask = causal_bottom_right();
  all[1].mask = sliding_window(1500, 0, Alignment::bottom_right()) & key_lengths({2000, 0});
  all[2].mask = causal_bottom_right() & Mask::where([](int, int, int, int k) { return k > 1100; });
  all[3].dropout = {.probability = 0.5F, .seed = 3};
  for (const AttentionOptions& options : all) {
    const auto alone = run_on_threads(1, table(), in, options);
    for (const int threads : {2, 7}) {
      const auto shared = run_on_threads(threads, table(), in, options);
      EXPECT_TRUE(same_bits(shared.out, alone.out)) << options.mask.description();
      EXPECT_TRUE(same_bits(shared.lse, alone.lse)) << options.mask.description();
    }
  }
}

TEST_P(OnEveryTarget, SameBitsInPrefillChunksAndDecode) {
  const Inputs in({.num_heads = 4,
                   .num_kv_heads = 2,
                   .q_len = 260,
                   .kv_len = 260,
                   .head_dim = 20,
                   .value_dim = 12},
                  5);
  std::vector<AttentionOptions> variants(3);
  variants[1].score_mod = [](auto score, int, int, int q, int k) {
    return score - 0.1F * static_cast<float>(q - k);
  };
  variants[2].dropout = {.probability = 0.2F, .seed = 1};
  for (AttentionOptions options : variants) {
    options.mask = causal(0);
    const auto whole = run(table(), in, options);
    for (const std::int64_t chunk : {1, 5, 64}) {
      for (std::int64_t first = 0; first < 260; first += chunk) {
        const std::int64_t last = std::min<std::int64_t>(first + chunk, 260);
        options.query_offset = first;
        // The later keys are missing.
        const auto part = run(table(),
                              {in.query.view().slice(2, first, last),
                               in.key.view().slice(2, 0, last), in.value.view().slice(2, 0, last)},
                              options);
        ASSERT_TRUE(same_bits(part.out, to_tensor(whole.out.view().slice(2, first, last))))
            << chunk << " " << first;
      }
    }
  }
}

// The kernel for decode computes so few rows: see kernels/rows-inl.h.
TEST_P(OnEveryTarget, SameBitsForAFewRows) {
  for (const std::int64_t dim : {1, 4, 7, 16, 20, 64, 150, 200}) {
    for (const std::int64_t kv_len : {1, 5, 16, 127, 129, 300, 1025, 2200}) {
      Inputs in({.q_len = 40, .kv_len = kv_len, .head_dim = dim, .value_dim = dim + kv_len % 3});
      // Scores grow, so that offsets change repeatedly.
      for (std::int64_t k = 0; k < kv_len; ++k) in.key(0, 0, k, 0) += 0.1F * static_cast<float>(k);
      in.key(0, 0, kv_len / 2, dim - 1) = -kInfinity;
      const auto many = run(table(), in, {.mask = key_lengths({kv_len - kv_len / 5})});
      for (const std::int64_t rows : {1, 2, 3, 4}) {
        const auto few = run(table(), {in.query.view().slice(2, 7, 7 + rows), in.key, in.value},
                             {.mask = key_lengths({kv_len - kv_len / 5})});
        const auto same = [&](const Tensor<float>& found, const Tensor<float>& expected) {
          return same_bits(found, to_tensor(expected.view().slice(2, 7, 7 + rows)));
        };
        EXPECT_TRUE(same(few.out, many.out) && same(few.lse, many.lse))
            << dim << " " << kv_len << " " << rows;
      }
    }
  }
}

TEST_P(OnEveryTarget, SameBitsWhateverTheNeighbours) {
  const Inputs in({.batch = 3, .num_heads = 2, .num_kv_heads = 2, .q_len = 70, .kv_len = 300}, 4);
  const auto all = run(table(), in, {});
  const auto alone = run(table(),
                         {in.query.view().slice(0, 1, 2), in.key.view().slice(0, 1, 2),
                          in.value.view().slice(0, 1, 2)},
                         {});
  EXPECT_TRUE(same_bits(alone.out, to_tensor(all.out.view().slice(0, 1, 2))));
}

// Where the tensors of a call exceed 8 MiB, panels prefetch the next rows.
TEST_P(OnEveryTarget, SameBitsInLargeTensors) {
  for (const auto& [head_dim, value_dim] : {std::pair{128, 96}, {256, 0}}) {
    const Inputs in({.batch = 20,
                     .num_heads = 4,
                     .num_kv_heads = 2,
                     .q_len = 65,
                     .kv_len = 300,
                     .head_dim = head_dim,
                     .value_dim = value_dim});
    for (const Mask& mask :
         {Mask(), causal_bottom_right(), sliding_window(40, 0, Alignment::bottom_right())}) {
      const auto all = run(table(), in, {.mask = mask});
      const auto few = run(table(),
                           {in.query.view().slice(0, 3, 4), in.key.view().slice(0, 3, 4),
                            in.value.view().slice(0, 3, 4)},
                           {.mask = mask});
      EXPECT_TRUE(same_bits(few.out, to_tensor(all.out.view().slice(0, 3, 4))) &&
                  same_bits(few.lse, to_tensor(all.lse.view().slice(0, 3, 4))))
          << mask.description() << " " << value_dim;
    }
  }
}

// A table used by score_mod need not be larger than the scores.
TEST_P(OnEveryTarget, AsksScoreModAndMaskOnlyAboutCellsThatExist) {
  const Inputs in({.batch = 2, .num_heads = 6, .num_kv_heads = 2, .q_len = 9, .kv_len = 140});
  std::atomic<int> strangers = 0;
  const auto notice = [&strangers](int b, int h, int q, int k) {
    const bool exists =
        b >= 0 && b < 2 && h >= 0 && h < 6 && q >= 500 && q < 509 && k >= 0 && k < 140;
    strangers += exists ? 0 : 1;
  };
  AttentionOptions options;
  options.query_offset = 500;
  options.score_mod = [notice](auto score, int b, int h, int q, int k) {
    notice(b, h, q, k);
    return score;
  };
  options.mask = Mask::where([notice](int b, int h, int q, int k) {
    notice(b, h, q, k);
    return true;
  });
  run(table(), in, options);
  EXPECT_EQ(strangers, 0);
}

TEST_P(OnEveryTarget, ReadsStridedViews) {
  const Inputs in({.batch = 2, .num_heads = 4, .num_kv_heads = 4, .q_len = 60, .kv_len = 140});
  const auto stored = [](FloatView view) { return to_tensor(view.permute({0, 2, 1, 3})); };
  const auto query = stored(in.query);
  const auto key = stored(in.key);
  const auto value = stored(in.value);
  const auto found = run(table(),
                         {query.view().permute({0, 2, 1, 3}), key.view().permute({0, 2, 1, 3}),
                          value.view().permute({0, 2, 1, 3})},
                         {.mask = causal_top_left()});
  EXPECT_TRUE(same_bits(found.out, run(table(), in, {.mask = causal_top_left()}).out));
}

}  // namespace
}  // namespace heed
