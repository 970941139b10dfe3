// Masks that show few keys, and masks joined by |.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/attention/plan.h"
#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::Inputs;
using testing_support::Refuses;
using testing_support::run;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::TargetTest;

ScoreShape square(std::int64_t length) { return {1, 1, length, length}; }

TEST(SparseMask, Patterns) {
  EXPECT_THAT(to_lines(global_tokens(1), square(4)), ElementsAre("####", "#...", "#...", "#..."));
  EXPECT_THAT(to_lines(strided(2), square(4)), ElementsAre("#.#.", ".#.#", "#.#.", ".#.#"));
  EXPECT_THAT(to_lines(columns(2), square(4)), ElementsAre(".#.#", ".#.#", ".#.#", ".#.#"));
  EXPECT_THAT(to_lines(dilated(1, 2), square(5)),
              ElementsAre("#.#..", ".#.#.", "#.#.#", ".#.#.", "..#.#"));
  EXPECT_THAT(to_lines(longformer(1, 1), square(5)),
              ElementsAre("#####", "###..", "####.", "#.###", "#..##"));
  EXPECT_THAT(
      to_lines(sparse_transformer(3), square(7)),
      ElementsAre("#......", "##.....", "###....", "####...", ".####..", "..####.", "#..####"));
}

TEST(SparseMask, BlockWindowsCountBlocks) {
  EXPECT_THAT(to_lines(block_window(0, 0, 2), square(5)),
              ElementsAre("##...", "##...", "..##.", "..##.", "....#"));
  EXPECT_THAT(to_lines(block_window(1, 0, 2), square(5)),
              ElementsAre("##...", "##...", "####.", "####.", "..###"));
  EXPECT_THAT(to_lines(block_window(kUnbounded, 0, 3), square(5)),
              ElementsAre("###..", "###..", "###..", "#####", "#####"));
  EXPECT_THAT(to_lines(block_window(0, kUnbounded, std::int64_t{1} << 32), square(2)),
              ElementsAre("##", "##"));
  // Blocks are whole also before the first key.
  EXPECT_THAT(to_lines(block_window(0, 1, 2, Alignment::offset(-3)), {1, 1, 4, 4}),
              ElementsAre("....", "##..", "##..", "####"));
}

TEST(SparseMask, StreamingSeesTheFirstAndTheLast) {
  EXPECT_THAT(to_lines(streaming(1, 2), square(5)),
              ElementsAre("#....", "##...", "###..", "#.##.", "#..##"));
  EXPECT_THAT(to_lines(streaming(2, 1, Alignment::bottom_right()), {1, 1, 2, 5}),
              ElementsAre("##.#.", "##..#"));
  EXPECT_THAT(to_lines(streaming(3, 1), square(3)), ElementsAre("#..", "##.", "###"));
  EXPECT_EQ(streaming(4, 1024).description(), "streaming(4, 1024)");
  EXPECT_EQ(streaming(0, 3).description(), "sliding_window(2, 0)");
  EXPECT_THROW(to_lines(streaming(1, 2), {1, 1, 2, 5}), InvalidArgument);
}

// Returns the blocks of keys that a block of queries sees, for a mask that shows whole blocks.
std::vector<std::int64_t> seen_blocks(const Mask& mask, const ScoreShape& shape, std::int64_t head,
                                      std::int64_t query, std::int64_t block) {
  const auto allowed = materialize_allow(mask, shape);
  std::vector<std::int64_t> seen;
  for (std::int64_t begin = 0; begin < shape.kv_len; begin += block) {
    const bool is_visible = allowed(0, head, query, begin);
    if (is_visible) seen.push_back(begin / block);
    for (std::int64_t k = begin; k < std::min(begin + block, shape.kv_len); ++k) {
      EXPECT_EQ(allowed(0, head, query, k), is_visible) << k;
    }
  }
  return seen;
}

TEST(SparseMask, RandomBlocksAreDrawnForEachBlockOfQueries) {
  const ScoreShape shape{1, 3, 70, 103};
  const Mask mask = random_blocks({.count = 4, .block = 7, .seed = 5}, Alignment::top_left());
  std::vector<std::vector<std::int64_t>> all;
  for (std::int64_t head = 0; head < 3; ++head) {
    for (std::int64_t row = 0; row < 10; ++row) {
      all.push_back(seen_blocks(mask, shape, head, row * 7, 7));
      EXPECT_EQ(all.back().size(), 4U);
      EXPECT_EQ(seen_blocks(mask, shape, head, row * 7 + 6, 7), all.back());
    }
  }
  std::vector<int> counts(15);
  for (const auto& row : all)
    for (const std::int64_t block : row) ++counts[static_cast<std::size_t>(block)];
  EXPECT_THAT(counts, testing::Each(testing::AllOf(testing::Ge(1), testing::Le(20))));
  std::sort(all.begin(), all.end());
  EXPECT_GE(std::unique(all.begin(), all.end()) - all.begin(), 28);  // heads and rows differ
}

TEST(SparseMask, RandomBlocksDependOnTheirNumbersAlone) {
  const ScoreShape shape{2, 2, 40, 40};
  const auto lines = [&](const RandomBlocks& drawn, std::int64_t batch = 0) {
    return to_lines(random_blocks(drawn), shape, kHashGlyphs, batch, 1);
  };
  const RandomBlocks drawn{.count = 2, .block = 3, .seed = 5};
  EXPECT_EQ(lines(drawn), lines(drawn));
  EXPECT_EQ(lines(drawn, 1), lines(drawn));
  EXPECT_NE(lines({.count = 2, .block = 3, .seed = 6}), lines(drawn));
  EXPECT_NE(lines({.count = 2, .block = 3, .seed = 5 + (std::uint64_t{1} << 32)}), lines(drawn));
  // The result of this version, on every machine.
  EXPECT_THAT(to_lines(random_blocks({.count = 2, .block = 1, .seed = 1}), square(6)),
              ElementsAre(".#..#.", "#.#...", "...#.#", "..#.#.", ".#...#", "#..#.."));
  EXPECT_EQ(count_visible(random_blocks({.count = 0, .block = 3}), shape), 0);
  EXPECT_EQ(count_visible(random_blocks({.count = 256, .block = 3}), shape), 2 * 2 * 40 * 40);
}

TEST(SparseMask, RandomBlocksOfThePastStayAsKeysAreAppended) {
  const Mask mask =
      random_blocks({.count = 2, .block = 4, .seed = 9, .only_past = true}, Alignment::offset(0));
  const auto all = to_lines(mask, {1, 1, 50, 50});
  for (const std::int64_t length : {1, 3, 4, 17, 49}) {
    const ScoreShape shape{1, 1, 1, length, length - 1};
    EXPECT_EQ(to_lines(mask & causal(), shape)[0],
              to_lines(mask & causal(), square(50))[static_cast<std::size_t>(length - 1)].substr(
                  0, static_cast<std::size_t>(length)));
  }
  EXPECT_EQ(all[0], "####" + std::string(46, '.'));
  EXPECT_EQ(all[5], std::string(8, '#') + std::string(42, '.'));
}

TEST(SparseMask, BigBirdIsWindowGlobalAndRandomBlocks) {
  EXPECT_EQ(bigbird().description(),
            "block_window(1, 1, 64) | global_tokens(128) | random_blocks(3, 64, 0)");
  const Mask mask = bigbird({.block = 2, .window = 1, .global = 1, .random = 0});
  EXPECT_THAT(to_lines(mask, square(6)),
              ElementsAre("######", "######", "####..", "####..", "##..##", "##..##"));
}

TEST(SparseMask, CountsWhatIsVisible) {
  const ScoreShape shape{2, 3, 150, 290, std::vector<std::int64_t>{140, 40}};
  const std::vector<Mask> masks{Mask(),
                                causal(0),
                                sliding_window(9, 3, Alignment::offset(1)) | columns(50),
                                bigbird({.block = 16}, Alignment::top_left()),
                                streaming(3, 20, Alignment::top_left()),
                                key_lengths({290, 7}) & strided(4, Alignment::top_left())};
  for (const Mask& mask : masks) {
    const auto allowed = materialize_allow(mask, shape);
    EXPECT_EQ(count_visible(mask, shape), std::ranges::count(allowed.elements(), true))
        << mask.description();
  }
  EXPECT_EQ(count_visible(causal(), {0, 3, 5, 5}), 0);
}

TEST(SparseMask, StandsWhereItsAlignmentSays) {
  const ScoreShape shape{1, 1, 2, 5};
  EXPECT_THAT(to_lines(strided(3, Alignment::bottom_right()), shape),
              ElementsAre("#..#.", ".#..#"));
  EXPECT_THAT(to_lines(global_tokens(1, Alignment::bottom_right()), shape),
              ElementsAre("#....", "#...."));
  EXPECT_THAT(to_lines(dilated(1, 1, Alignment::offset(2)), shape), ElementsAre(".###.", "..###"));
  EXPECT_THROW(to_lines(strided(3), shape), InvalidArgument);
}

TEST(SparseMask, OrShowsWhatEitherShows) {
  const Mask mask = (sliding_window(1, 0) | columns(3)) & causal();
  EXPECT_EQ(mask.description(), "(sliding_window(1, 0) | columns(3)) & causal");
  EXPECT_THAT(to_lines(mask, square(5)), ElementsAre("#....", "##...", ".##..", "..##.", "..###"));
  const Mask three = (causal() & sliding_window(1, 0)) | columns(3) | global_tokens(1);
  EXPECT_EQ(three.description(), "(causal & sliding_window(1, 0)) | columns(3) | global_tokens(1)");
  EXPECT_EQ((Mask() | causal()).description(), "none");
  EXPECT_THAT(to_lines(Mask::tree({-1, -1}) | columns(2), square(4)),
              ElementsAre("##.#", "##.#", "####", "##.#"));
}

TEST(SparseMask, OrRefusesWhatAdds) {
  const Tensor<float> added({3, 3});
  EXPECT_THAT(([&] { causal() | Mask::additive(added); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("additive")));
}

TEST(SparseMask, RefusesWrongNumbers) {
  EXPECT_THROW(global_tokens(-1), InvalidArgument);
  EXPECT_THROW(strided(0), InvalidArgument);
  EXPECT_THROW(columns(0), InvalidArgument);
  EXPECT_THROW(dilated(-1, 1), InvalidArgument);
  EXPECT_THROW(dilated(1, 0), InvalidArgument);
  EXPECT_THROW(dilated(std::int64_t{1} << 30, std::int64_t{1} << 30), InvalidArgument);
  EXPECT_THROW(block_window(-1, 0, 2), InvalidArgument);
  EXPECT_THROW(block_window(0, 0, 0), InvalidArgument);
  EXPECT_THROW(streaming(-1, 1), InvalidArgument);
  EXPECT_THROW(streaming(1, 0), InvalidArgument);
  EXPECT_THROW(random_blocks({.block = 0}), InvalidArgument);
  EXPECT_THAT([] { random_blocks({.count = 257}); }, Refuses("count", "257"));
  EXPECT_THAT([] { bigbird({.window = 2}); }, Refuses("window", "2"));
  EXPECT_THROW(bigbird({.global = -1}), InvalidArgument);
  EXPECT_THROW(bigbird({.block = 0}), InvalidArgument);
  EXPECT_THAT([] { longformer(-1, 1); }, Refuses("window", "-1"));
  EXPECT_THAT([] { sparse_transformer(0); }, Refuses("stride", "0"));
}

// Tiles that no query sees are not visited.
TEST(SparseMask, CostFollowsWhatIsVisible) {
  const AttentionShapes shapes{.num_heads = 1,
                               .num_kv_heads = 1,
                               .q_len = 16384,
                               .kv_len = 16384,
                               .head_dim = 16,
                               .value_dim = 16};
  const auto visited = [&](const Mask& mask) {
    const TileCounts tiles = plan(shapes, {.mask = mask}).tiles();
    return static_cast<double>(tiles.total - tiles.skipped) / static_cast<double>(tiles.total);
  };
  EXPECT_LT(visited(longformer(128, 16)), 0.04);
  EXPECT_LT(visited(sliding_window(64, 64) | sliding_window(10, 10, Alignment::offset(4000))),
            0.04);
  EXPECT_LT(visited(dilated(16, 8)), 0.04);
  EXPECT_LT(visited(columns(1024)), 0.13);
  EXPECT_LT(visited(bigbird()), 0.08);
  EXPECT_LT(visited(block_window(1, 1, 64)), 0.03);
  EXPECT_LT(visited(random_blocks({.count = 3, .block = 128})), 0.035);
  EXPECT_LT(visited(streaming(4, 256)), 0.04);
}

// Distances use the query positions of the mask.
TEST(SparseMask, SaysWhereQueriesStandForAlibi) {
  const Inputs in(Sizes{.num_heads = 2, .num_kv_heads = 2, .q_len = 5, .kv_len = 40});
  const Tensor<float> slopes({2}, {0.5F, 0.25F});
  const auto out = [&](const Mask& mask, std::int64_t query_offset) {
    const AttentionOptions options{
        .mask = mask, .alibi_slopes = slopes, .query_offset = query_offset};
    return attention(in.query, in.key, in.value, options);
  };
  const Alignment end = Alignment::bottom_right();
  for (const Mask& mask : {longformer(3, 2, end), strided(4, end), streaming(2, 5, end),
                           bigbird({.block = 4}, end), columns(3) | causal(end)}) {
    EXPECT_TRUE(same_bits(out(mask, 0), out(mask, 35))) << mask.description();
  }
  EXPECT_FALSE(same_bits(out(columns(3), 0), out(columns(3), 35)));
  const Mask mixed = strided(4, end) | causal_top_left();
  EXPECT_FALSE(same_bits(out(mixed & strided(2, end), 0), out(causal() & strided(4, end), 35)));
}

class SparseMaskOn : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(SparseMaskOn);

// Gives the bits of the same mask as booleans. Masks of intervals only are exempt, because they
// take the plain path.
TEST_P(SparseMaskOn, HasTheBitsOfBooleans) {
  const std::vector<std::function<Mask(const Alignment&)>> masks{
      [](const Alignment& at) { return longformer(40, 3, at); },
      [](const Alignment& at) { return sparse_transformer(37, at); },
      [](const Alignment& at) { return dilated(9, 7, at); },
      [](const Alignment& at) { return strided(16, at) & causal(at); },
      [](const Alignment& at) { return strided(1000, at) | columns(1); },
      [](const Alignment& at) { return strided(150, at); },
      [](const Alignment& at) { return strided(1, at) & columns(128) & causal(at); },
      [](const Alignment& at) { return strided(6, at) & columns(9); },
      [](const Alignment& at) { return columns(50) | sliding_window(3, 0, at); },
      [](const Alignment& at) { return (strided(100, at) | global_tokens(2, at)) & causal(at); },
      [](const Alignment& at) { return bigbird({.block = 16, .global = 1}, at); },
      [](const Alignment& at) {
        return random_blocks({.count = 3, .block = 23, .seed = 4, .only_past = true}, at);
      },
      [](const Alignment& at) { return streaming(3, 50, at); },
      [](const Alignment& at) {
        return (block_window(1, 0, 19, at) | global_tokens(1, at)) & causal(at);
      },
      [](const Alignment& at) {
        return key_lengths({290, 120}) & (columns(9) | (causal(at) & sliding_window(5, 5, at)));
      }};
  const Sizes sizes{.batch = 2, .num_heads = 4, .num_kv_heads = 2, .q_len = 130, .kv_len = 300};
  const Inputs in(sizes);
  const auto grad_out = grad_out_for(in);
  for (const Alignment& alignment : {Alignment::bottom_right(), Alignment::top_left()}) {
    for (const auto& make : masks) {
      const AttentionOptions sparse{.mask = make(alignment)};
      const AttentionOptions booleans{
          .mask = Mask::allow(materialize_allow(sparse.mask, {2, 4, 130, 300}))};
      const auto found = run(table(), in, sparse);
      const auto expected = run(table(), in, booleans);
      EXPECT_TRUE(same_bits(found.out, expected.out)) << sparse.mask.description();
      EXPECT_TRUE(same_bits(found.lse, expected.lse)) << sparse.mask.description();
      EXPECT_TRUE(same_bits(gradients_of(table(), grad_out, in, sparse),
                            gradients_of(table(), grad_out, in, booleans)))
          << sparse.mask.description();
    }
  }
}

// Reducing a tile to its visible keys changes no bit: with threads that share the keys, with
// non-finite hidden numbers, and where a term or dropout uses positions.
TEST_P(SparseMaskOn, KeysInStepsHaveTheBitsOfBooleans) {
  const Sizes sizes{.batch = 1, .num_heads = 4, .num_kv_heads = 2, .q_len = 70, .kv_len = 2500};
  Inputs in(sizes);
  // No query sees these keys.
  for (std::int64_t k = 0; k < 2500; ++k) {
    if (k % 5 == 4) continue;
    for (std::int64_t d = 0; d < in.key.extent(3); ++d) {
      in.key(0, 0, k, d) = std::numeric_limits<float>::quiet_NaN();
      in.value(0, 1, k, d) = std::numeric_limits<float>::infinity();
    }
  }
  const Mask mask = columns(5) & causal_bottom_right();
  const Tensor<bool> allowed = materialize_allow(mask, {1, 4, 70, 2500});
  const auto agrees = [&](AttentionOptions options) {
    options.mask = mask;
    AttentionOptions booleans = options;
    booleans.mask = Mask::allow(allowed);
    for (const int threads : {1, 4}) {
      set_num_threads(threads);
      const auto found = run(table(), in, options);
      const auto expected = run(table(), in, booleans);
      EXPECT_TRUE(same_bits(found.out, expected.out)) << threads;
      EXPECT_TRUE(same_bits(found.lse, expected.lse)) << threads;
      const auto grad_out = grad_out_for(in);
      EXPECT_TRUE(same_bits(gradients_of(table(), grad_out, in, options),
                            gradients_of(table(), grad_out, in, booleans)))
          << threads;
    }
    set_num_threads(0);
  };
  agrees({});
  agrees({.softcap = 3.0F});
  agrees({.dropout = {.probability = 0.3F, .seed = 7}});
}

}  // namespace
}  // namespace heed
