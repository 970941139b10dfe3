// Masks by blocks: Mask::blocks and its layouts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/attention/block_layout.h"
#include "heed/attention/mask.h"
#include "heed/attention/plan.h"
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
using testing_support::Message;
using testing_support::Refuses;
using testing_support::run;
using testing_support::same_bits;
using testing_support::Sizes;
using testing_support::TargetTest;

// Rows of 2 × 3 blocks: the first and the last (partial); none; the middle.
BlockLayout small_layout() {
  return {.q_len = 5,
          .kv_len = 8,
          .q_block = 2,
          .kv_block = 3,
          .row_begin = {0, 2, 2, 3},
          .columns = {0, 2, 1},
          .partial = {0, 1, 0}};
}
const ScoreShape kSmallShape{1, 1, 5, 8};

// How much of the block of a pair a layout shows.
enum class Seen { kNone, kPart, kAll };
Seen seen(const BlockLayout& layout, std::int64_t batch, std::int64_t head, std::int64_t q,
          std::int64_t k) {
  const std::int64_t rows = (layout.q_len + layout.q_block - 1) / layout.q_block;
  const std::int64_t b = layout.batch == 1 ? 0 : batch;
  const std::int64_t h = layout.num_heads == 1 ? 0 : head;
  const auto row = static_cast<std::size_t>((b * layout.num_heads + h) * rows + q / layout.q_block);
  for (std::int64_t i = layout.row_begin[row]; i < layout.row_begin[row + 1]; ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (layout.columns[at] != k / layout.kv_block) continue;
    return !layout.partial.empty() && layout.partial[at] != 0 ? Seen::kPart : Seen::kAll;
  }
  return Seen::kNone;
}

TEST(BlockMask, ShowsItsBlocks) {
  EXPECT_THAT(to_lines(Mask::blocks(small_layout()), kSmallShape),
              ElementsAre("###...##", "###...##", "........", "........", "...###.."));
  const Mask odd = Mask::where([](int, int, int, int k) { return k % 2 == 1; });
  const Mask mask = Mask::blocks(small_layout(), odd);
  EXPECT_THAT(to_lines(mask, kSmallShape),
              ElementsAre("###....#", "###....#", "........", "........", "...###.."));
  EXPECT_EQ(mask.description(), "blocks[3 of 9, 2 x 3](where(function))");
  EXPECT_EQ(Mask::blocks(small_layout()).description(), "blocks[3 of 9, 2 x 3]");
  BlockLayout full = small_layout();
  full.partial.clear();
  EXPECT_THAT(to_lines(Mask::blocks(full, odd), kSmallShape)[0], "###...##");
}

// Queries are counted from the first of the call, independent of their positions; the nested mask
// uses positions.
TEST(BlockMask, CountsQueriesFromTheFirst) {
  const Mask mask = Mask::blocks(small_layout(), causal(0));
  EXPECT_THAT(to_lines(mask, {1, 1, 5, 8, 6}),
              ElementsAre("###...#.", "###...##", "........", "........", "...###.."));
}

TEST(BlockMask, MayDifferByBatchEntryAndHead) {
  BlockLayout layout{.num_heads = 2,
                     .q_len = 1,
                     .kv_len = 2,
                     .q_block = 1,
                     .kv_block = 1,
                     .row_begin = {0, 1, 2},
                     .columns = {0, 1}};
  const ScoreShape shape{2, 2, 1, 2};
  for (const std::int64_t batch : {0, 1}) {
    EXPECT_THAT(to_lines(Mask::blocks(layout), shape, kHashGlyphs, batch, 0), ElementsAre("#."));
    EXPECT_THAT(to_lines(Mask::blocks(layout), shape, kHashGlyphs, batch, 1), ElementsAre(".#"));
  }
  std::swap(layout.num_heads, layout.batch);
  EXPECT_THAT(to_lines(Mask::blocks(layout), shape, kHashGlyphs, 1, 0), ElementsAre(".#"));
}

TEST(BlockMask, ServesTheLengthsThatItWasMadeFor) {
  const Mask mask = Mask::blocks(small_layout());
  EXPECT_THAT(([&] { to_lines(mask, {1, 1, 5, 9}); }), Refuses("kv_len", "9"));
  BlockLayout two{.batch = 2, .q_len = 1, .kv_len = 1, .row_begin = {0, 0, 0}};
  EXPECT_THAT(([&] { to_lines(Mask::blocks(two), {3, 1, 1, 1}); }), Refuses("batch", "3"));
  EXPECT_THROW(to_lines(Mask::blocks(small_layout(), key_lengths({9})), kSmallShape),
               InvalidArgument);
}

TEST(BlockMask, RefusesNumbersThatContradictEachOther) {
  const auto refused = [](const std::function<void(BlockLayout&)>& change, const Message& problem) {
    BlockLayout layout = small_layout();
    change(layout);
    EXPECT_THAT(([&] { Mask::blocks(layout); }), ThrowsMessage<InvalidArgument>(problem));
  };
  refused([](BlockLayout& l) { l.q_block = 0; }, {"q_block", "0"});
  refused([](BlockLayout& l) { l.kv_block = 129; }, {"kv_block", "129"});
  refused([](BlockLayout& l) { l.batch = -1; }, {"batch", "-1"});
  refused([](BlockLayout& l) { l.kv_len = -1; }, {"kv_len", "-1"});
  refused([](BlockLayout& l) { l.q_len = std::int64_t{1} << 40; }, "q_len is ");
  refused([](BlockLayout& l) { l.row_begin.pop_back(); }, {"row_begin", "3"});
  refused([](BlockLayout& l) { l.row_begin.clear(); }, {"row_begin", "0"});
  refused([](BlockLayout& l) { l.row_begin = {1, 2, 2, 3}; }, "row_begin goes from 1 to 3");
  refused([](BlockLayout& l) { l.row_begin = {0, 2, 2, 4}; }, "expected from 0 to the 3 columns");
  refused([](BlockLayout& l) { l.row_begin = {0, 4, 2, 3}; }, {"row_begin[2]", "2"});
  refused([](BlockLayout& l) { l.row_begin = {0, -1, 2, 3}; }, {"row_begin[1]", "-1"});
  refused([](BlockLayout& l) { l.columns[2] = 3; }, {"columns[2]", "3"});
  refused([](BlockLayout& l) { l.columns[0] = -1; }, {"columns[0]", "-1"});
  refused([](BlockLayout& l) { l.columns = {1, 1, 1}; }, {"columns[1]", "1"});
  refused([](BlockLayout& l) { l.partial.pop_back(); }, {"partial", "2"});
  const Tensor<float> added({5, 8});
  EXPECT_THAT(([&] { Mask::blocks(small_layout(), Mask::additive(added)); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("adds to scores")));
}

TEST(BlockMask, EmptyCallsAreDefined) {
  EXPECT_THAT(to_lines(Mask::blocks({.kv_len = 3}), {1, 1, 0, 3}), ElementsAre());
  EXPECT_THAT(to_lines(Mask::blocks({.q_len = 2, .row_begin = {0, 0}}), {1, 1, 2, 0}),
              ElementsAre("", ""));
}

TEST(BlockLayouts, AreThoseOfAMask) {
  const BlockLayout layout = BlockLayout::from(causal(), {1, 1, 5, 5}, 2, 2);
  EXPECT_EQ(layout, (BlockLayout{.q_len = 5,
                                 .kv_len = 5,
                                 .q_block = 2,
                                 .kv_block = 2,
                                 .row_begin = {0, 1, 3, 6},
                                 .columns = {0, 0, 1, 0, 1, 2},
                                 .partial = {1, 0, 1, 0, 0, 0}}));
  EXPECT_THAT([] { BlockLayout::from(causal(), {1, 1, 5, 5}, 0); }, Refuses("q_block", "0"));
  EXPECT_THROW(BlockLayout::from(causal(), {1, 1, 5, 6}), InvalidArgument);
}

std::vector<Mask> masks_of_all_kinds() {
  Tensor<bool> allowed({2, 1, 70, 90});
  std::int64_t i = 0;
  for (bool& element : allowed.elements()) element = ++i % 7 > 2 && i % 1000 > 400;
  return {
      Mask(),
      causal(0),
      Mask::allow(std::move(allowed)),
      sliding_window(5, 5, Alignment::offset(-9)) | columns(30),
      key_lengths({90, 0}) & strided(5, Alignment::top_left()),
      bigbird({.block = 8}, Alignment::offset(0)),
      Mask::tree({-1, 0, 0, 1, -1}, Alignment::offset(0)),
      Mask::where([](int b, int h, int q, int k) { return (q / 30 + k / 40 + b + h) % 2 == 0; })};
}

TEST(BlockLayouts, HaveTheBlocksThatAMaskShows) {
  const ScoreShape shape{2, 2, 70, 90, std::vector<std::int64_t>{20, 0}};
  for (const Mask& mask : masks_of_all_kinds()) {
    const auto allowed = materialize_allow(mask, shape);
    const BlockLayout layout = BlockLayout::from(mask, shape, 16, 24);
    layout.check("test");
    EXPECT_TRUE(same_bits(materialize_allow(Mask::blocks(layout, mask), shape), allowed))
        << mask.description();
    // Expects no empty block to be listed and no full block to be partial.
    for (std::int64_t q = 0; q < 70; q += 16) {
      for (std::int64_t k = 0; k < 90; k += 24) {
        const auto block = allowed.view()
                               .select(0, 1)
                               .select(0, 1)
                               .slice(0, q, std::min<std::int64_t>(q + 16, 70))
                               .slice(1, k, std::min<std::int64_t>(k + 24, 90));
        std::int64_t visible = 0;
        for_each_element(block, [&](bool is_visible) { visible += is_visible ? 1 : 0; });
        const Seen expected = visible == 0                              ? Seen::kNone
                              : visible == block.shape().num_elements() ? Seen::kAll
                                                                        : Seen::kPart;
        EXPECT_EQ(seen(layout, 1, 1, q, k), expected) << mask.description() << ' ' << q << ' ' << k;
      }
    }
  }
}

// The cost of a layout is proportional to its visible blocks.
TEST(BlockMask, CostFollowsWhatIsVisible) {
  constexpr std::int64_t kLength = 8192;
  BlockLayout layout{.q_len = kLength, .kv_len = kLength};
  for (std::int32_t row = 0; row < kLength / 128; ++row) {
    layout.columns.push_back(63 - row);
    layout.row_begin.push_back(row + 1);
  }
  const AttentionShapes shapes{.num_heads = 1,
                               .num_kv_heads = 1,
                               .q_len = kLength,
                               .kv_len = kLength,
                               .head_dim = 16,
                               .value_dim = 16};
  const TileCounts tiles = plan(shapes, {.mask = Mask::blocks(layout)}).tiles();
  EXPECT_LT(tiles.total - tiles.skipped, tiles.total / 30);
  EXPECT_EQ(count_visible(Mask::blocks(layout), {1, 1, kLength, kLength}), 64 * 128 * 128);
}

class BlockMaskOn : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(BlockMaskOn);

// Gives the bits of the same mask as booleans, forward and backward.
TEST_P(BlockMaskOn, HasTheBitsOfBooleans) {
  const Sizes sizes{.batch = 2, .num_heads = 4, .num_kv_heads = 2, .q_len = 130, .kv_len = 300};
  const Inputs in(sizes);
  const auto grad_out = grad_out_for(in);
  const ScoreShape shape{2, 4, 130, 300};
  for (const std::pair<std::int64_t, std::int64_t> block :
       {std::pair{128, 128}, {64, 32}, {13, 50}, {1, 1}}) {
    const Mask source = bigbird({.block = 11, .seed = 3}, Alignment::bottom_right());
    const Mask mask =
        Mask::blocks(BlockLayout::from(source, shape, block.first, block.second), source);
    const AttentionOptions blocks{.mask = mask};
    const AttentionOptions booleans{.mask = Mask::allow(materialize_allow(source, shape))};
    const auto found = run(table(), in, blocks);
    const auto expected = run(table(), in, booleans);
    EXPECT_TRUE(same_bits(found.out, expected.out)) << mask.description();
    EXPECT_TRUE(same_bits(found.lse, expected.lse)) << mask.description();
    EXPECT_TRUE(same_bits(gradients_of(table(), grad_out, in, blocks),
                          gradients_of(table(), grad_out, in, booleans)))
        << mask.description();
  }
}

}  // namespace
}  // namespace heed
