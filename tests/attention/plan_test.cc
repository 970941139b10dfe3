#include "heed/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <sstream>
#include <thread>
#include <vector>

#include "bench/heap.h"
#include "heed/parallel.h"
#include "support/tensors.h"

namespace heed {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::same_bits;

AttentionShapes shapes_of(std::int64_t length, std::int64_t dim) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .q_len = length,
          .kv_len = length,
          .head_dim = dim,
          .value_dim = dim};
}

struct Inputs {
  Tensor<float> query, key, value;

  explicit Inputs(const AttentionShapes& s)
      : query(normal<float>({s.batch, s.num_heads, s.q_len, s.head_dim}, 1)),
        key(normal<float>({s.batch, s.num_kv_heads, s.kv_len, s.head_dim}, 2)),
        value(normal<float>({s.batch, s.num_kv_heads, s.kv_len, s.value_dim}, 3)) {}
};

TEST(Plan, RunsToTheSameBitsAsAttention) {
  for (const std::int64_t length : {0, 1, 16, 129, 1100}) {
    const AttentionShapes shapes = shapes_of(length, 20);
    const Inputs in(shapes);
    const AttentionOptions options{.mask = causal()};
    EXPECT_TRUE(same_bits(plan(shapes, options).run(in.query, in.key, in.value),
                          attention(in.query, in.key, in.value, options)))
        << length;
  }
}

TEST(Plan, WritesIntoTheCallersMemory) {
  const AttentionShapes shapes = shapes_of(200, 16);
  const Inputs in(shapes);
  const AttentionPlan planned = plan(shapes, {.mask = causal()});
  const auto expected = attention_with_lse(in.query, in.key, in.value, {.mask = causal()});
  // The output's rows lie apart, and the workspace is not aligned.
  Tensor<float> memory({1, 4, 200, 19});
  Tensor<float> lse({1, 4, 200});
  std::vector<std::byte> workspace(planned.workspace_bytes() + 1);
  planned.run_into({.out = memory.view().slice(3, 0, 16),
                    .lse = lse,
                    .workspace = std::span(workspace).subspan(1)},
                   in.query, in.key, in.value);
  EXPECT_TRUE(same_bits(to_tensor(memory.view().slice(3, 0, 16)), expected.out));
  EXPECT_TRUE(same_bits(lse, expected.lse));
  EXPECT_EQ(memory(0, 0, 0, 16), 0);
}

TEST(Plan, RunsOnManyThreadsAtOnce) {
  const AttentionShapes shapes = shapes_of(150, 16);
  const Inputs in(shapes);
  const AttentionPlan planned = plan(shapes);
  const Tensor<float> expected = planned.run(in.query, in.key, in.value);
  std::vector<Tensor<float>> found(4);
  std::vector<std::thread> threads;
  threads.reserve(found.size());
  for (Tensor<float>& out : found) {
    threads.emplace_back([&] { out = planned.run(in.query, in.key, in.value); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensor<float>& out : found) EXPECT_TRUE(same_bits(out, expected));
}

TEST(Plan, RefusesOtherTensors) {
  const AttentionPlan planned = plan(shapes_of(9, 4));
  const Inputs other(shapes_of(8, 4));
  EXPECT_THAT(([&] { (void)planned.run(other.query, other.key, other.value); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("q_len is 8, but 9 was planned")));
  const Inputs in(shapes_of(9, 4));
  Tensor<float> out({1, 4, 9, 5});
  EXPECT_THAT(([&] { planned.run_into({.out = out}, in.query, in.key, in.value); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("out has shape [1, 4, 9, 5], expected")));
  Tensor<float> right({1, 4, 9, 4});
  std::vector<std::byte> workspace(8);
  if (planned.workspace_bytes() > 0) {
    EXPECT_THAT(([&] {
                  planned.run_into({.out = right, .workspace = workspace}, in.query, in.key,
                                   in.value);
                }),
                ThrowsMessage<InvalidArgument>(HasSubstr("workspace has 8 bytes, expected")));
  }
}

// By the definition, for shapes that end in the middle of tiles and panels.
TEST(Plan, CountsTilesOneByOne) {
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 100; ++q) ranges.push_back({q * 7 % 300, q * 7 % 300 + q % 3 * 128});
  for (const Mask& mask :
       {Mask(), causal_bottom_right(), causal_top_left(), Mask::rows(ranges),
        sliding_window(150, 30, Alignment::bottom_right()), prefix(256, Alignment::top_left())}) {
    const AttentionPlan planned =
        plan({.q_len = 100, .kv_len = 600, .head_dim = 8, .value_dim = 8}, {.mask = mask});
    if (planned.tile_keys() == 0) GTEST_SKIP() << "the reference has no tiles";
    const auto allowed = materialize_allow(mask, {.q_len = 100, .kv_len = 600});
    TileCounts counts;
    for (std::int64_t q = 0; q < 100; q += planned.panel_rows()) {
      for (std::int64_t key = 0; key < 600; key += planned.tile_keys(), ++counts.total) {
        std::int64_t seen = 0;
        std::int64_t cells = 0;
        for (std::int64_t i = q; i < std::min<std::int64_t>(q + planned.panel_rows(), 100); ++i) {
          for (std::int64_t k = key; k < std::min<std::int64_t>(key + planned.tile_keys(), 600);
               ++k, ++cells) {
            seen += allowed(0, 0, i, k) ? 1 : 0;
          }
        }
        counts.mixed += seen > 0 && seen < cells ? 1 : 0;
        counts.skipped += seen == 0 ? 1 : 0;
      }
    }
    const TileCounts found = planned.tiles();
    EXPECT_EQ(found.total, counts.total) << mask.description();
    EXPECT_EQ(found.mixed + found.skipped, counts.mixed + counts.skipped) << mask.description();
    EXPECT_LE(found.skipped, counts.skipped) << mask.description();
  }
}

// One tile at a time this would take weeks.
TEST(Plan, CountsTheTilesOfLongSequences) {
  const std::int64_t length = 1'000'000'000;
  const AttentionPlan planned =
      plan({.q_len = 100'000, .kv_len = length}, {.mask = prefix(length, Alignment::top_left())});
  if (planned.tile_keys() == 0) GTEST_SKIP() << "the reference has no tiles";
  const TileCounts counts = planned.tiles();
  EXPECT_GT(counts.total, std::int64_t{1'000} * 7'812'500);
  EXPECT_EQ(counts.skipped, 0);
  EXPECT_EQ(counts.mixed, 0);
}

TEST(Plan, ChecksShapesAndOptions) {
  EXPECT_THAT([] { plan({.num_heads = 3, .num_kv_heads = 2}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("num_heads is 3, expected a multiple")));
  EXPECT_THAT([] { plan({.q_len = -1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("q_len is -1, expected at least 0")));
  EXPECT_THAT([] { plan({.q_len = 3, .kv_len = 5}, {.mask = causal()}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("causal")));
  EXPECT_THAT([] { plan({.dtype = DataType::kFloat64}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("dtype is float64")));
}

TEST(Plan, SaysWhatItDoes) {
  const AttentionPlan planned = plan(shapes_of(512, 64), {.mask = causal()});
  std::ostringstream text;
  text << planned;
  EXPECT_THAT(text.str(), HasSubstr("query [1, 4, 512, 64], key [1, 2, 512, 64]"));
  EXPECT_THAT(text.str(), HasSubstr("causal"));
  EXPECT_THAT(text.str(), HasSubstr(planned.target()));
  if (planned.target() == "reference") return;
  const TileCounts tiles = planned.tiles();
  EXPECT_GT(tiles.skipped, tiles.total / 4);
  EXPECT_LT(tiles.skipped, tiles.total / 2);
  EXPECT_GT(tiles.mixed, 0);
  EXPECT_EQ(plan(shapes_of(512, 64)).tiles().skipped, 0);
}

TEST(Plan, StagesWhatIsNotFloatOrLiesFarApart) {
  AttentionShapes shapes = shapes_of(512, 64);
  if (plan(shapes).target() == "reference") GTEST_SKIP();
  EXPECT_FALSE(plan(shapes).stages_keys());
  shapes.key_stride = 1024;
  EXPECT_TRUE(plan(shapes).stages_keys());
  EXPECT_FALSE(plan(shapes).stages_values());
  shapes.dtype = DataType::kBFloat16;
  EXPECT_TRUE(plan(shapes).stages_values());
}

TEST(Plan, NeedsMemoryLinearInTheLengthsAndFewThreadsForLittleWork) {
  set_num_threads(2);
  const std::size_t some = plan(shapes_of(4096, 64)).workspace_bytes();
  EXPECT_EQ(plan(shapes_of(65536, 64)).workspace_bytes(), some);
  EXPECT_EQ(plan(shapes_of(16, 64)).num_threads(), 1);
  EXPECT_LE(plan(shapes_of(4096, 64)).num_threads(), 2);
  set_num_threads(0);
}

TEST(Plan, SplitsTheKeysOfFewRows) {
  set_num_threads(2);
  AttentionShapes shapes = shapes_of(32768, 64);
  shapes.num_heads = 1;
  shapes.num_kv_heads = 1;
  shapes.q_len = 1;
  const AttentionPlan one_row = plan(shapes);
  shapes.q_len = 32768;
  const AttentionPlan many_rows = plan(shapes);
  set_num_threads(0);
  if (one_row.target() == "reference") GTEST_SKIP();
  EXPECT_TRUE(one_row.splits_keys());
  EXPECT_EQ(one_row.num_threads(), 2);
  EXPECT_THAT(one_row.to_string(), HasSubstr("2, dividing the keys, 1024 at a time"));
  EXPECT_FALSE(many_rows.splits_keys());
}

TEST(Plan, WritesNothingWhenMemoryIsShort) {
  const AttentionShapes shapes = shapes_of(512, 64);
  const AttentionPlan planned = plan(shapes);
  const auto bytes = static_cast<std::int64_t>(planned.workspace_bytes());
  if (planned.target() == "reference") GTEST_SKIP();
  const Inputs in(shapes);
  Tensor<float> out(in.query.shape());
  Tensor<float> lse({shapes.batch, shapes.num_heads, shapes.q_len});
  for (float& element : out.elements()) element = 7;
  for (float& element : lse.elements()) element = 7;
  {
    const cli::AllocationLimit limit(bytes / 2);
    EXPECT_THROW(planned.run_into({.out = out, .lse = lse}, in.query, in.key, in.value),
                 std::bad_alloc);
    EXPECT_THROW(attention(in.query, in.key, in.value), std::bad_alloc);
  }
  for (const float element : out.elements()) ASSERT_EQ(element, 7);
  for (const float element : lse.elements()) ASSERT_EQ(element, 7);
  planned.run_into({.out = out, .lse = lse}, in.query, in.key, in.value);
  EXPECT_TRUE(same_bits(out, attention(in.query, in.key, in.value)));
}

}  // namespace
}  // namespace heed
