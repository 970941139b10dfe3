#include "heed/attention/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;

using testing_support::kInfinity;
using testing_support::Message;
using testing_support::Refuses;

ScoreShape lengths(std::int64_t q_len, std::int64_t kv_len, std::int64_t query_offset = 0) {
  return {1, 1, q_len, kv_len, query_offset};
}

void expect_refused(const Mask& mask, const ScoreShape& shape, const Message& text) {
  EXPECT_THAT(([&] { materialize_allow(mask, shape); }), ThrowsMessage<InvalidArgument>(text));
}

TEST(Mask, DefaultAllowsEverything) {
  EXPECT_THAT(to_lines(Mask(), lengths(2, 3)), ElementsAre("###", "###"));
  EXPECT_EQ(Mask().description(), "none");
}

TEST(Causal, DemandsEqualLengths) {
  EXPECT_THAT(to_lines(causal(), lengths(3, 3)), ElementsAre("#..", "##.", "###"));
  expect_refused(causal(), lengths(2, 3), {"kv_len", "3"});
  EXPECT_THAT(to_lines(causal(), lengths(2, 3, 1)), ElementsAre("##.", "###"));
}

TEST(Causal, NamesItsAlignment) {
  EXPECT_THAT(to_lines(causal_top_left(), lengths(2, 4)), ElementsAre("#...", "##.."));
  EXPECT_THAT(to_lines(causal_bottom_right(), lengths(2, 4)), ElementsAre("###.", "####"));
  EXPECT_THAT(to_lines(causal_bottom_right(), lengths(3, 2)), ElementsAre("..", "#.", "##"));
  EXPECT_THAT(to_lines(causal(1), lengths(2, 4)), ElementsAre("##..", "###."));
  EXPECT_THAT(to_lines(causal(-1), lengths(2, 4)), ElementsAre("....", "#..."));
  EXPECT_THAT(to_lines(causal(0), lengths(2, 4, 2)), ElementsAre("###.", "####"));
}

TEST(Causal, RefusesAContradiction) {
  EXPECT_THAT(to_lines(causal_bottom_right(), lengths(2, 4, 2)), ElementsAre("###.", "####"));
  expect_refused(causal_bottom_right(), lengths(2, 4, 1), {"query_offset", "1"});
  expect_refused(causal(std::numeric_limits<std::int64_t>::max()), lengths(2, 4),
                 "beyond any position");
  expect_refused(Mask(), {1, 1, 2, 4, std::numeric_limits<std::int64_t>::max()}, "query_offset");
}

TEST(SlidingWindow, CountsKeysBesideTheQuery) {
  EXPECT_THAT(to_lines(sliding_window(1, 0), lengths(4, 4)),
              ElementsAre("#...", "##..", ".##.", "..##"));
  EXPECT_THAT(to_lines(sliding_window(0, 2), lengths(3, 3)), ElementsAre("###", ".##", "..#"));
  EXPECT_THAT(to_lines(sliding_window(kUnbounded, 0), lengths(3, 3)),
              ElementsAre("#..", "##.", "###"));
  EXPECT_THAT(to_lines(sliding_window(kUnbounded, kUnbounded), lengths(2, 2)),
              ElementsAre("##", "##"));
  EXPECT_THAT(to_lines(sliding_window(1, 0, Alignment::bottom_right()), lengths(1, 4)),
              ElementsAre("..##"));
  EXPECT_THAT(to_lines(sliding_window(0, 0, Alignment::offset(9)), lengths(1, 4)),
              ElementsAre("...."));
  EXPECT_THAT(([] { sliding_window(-1, 0); }), Refuses("left", "-1"));
  expect_refused(sliding_window(1, 1), lengths(1, 4), {"q_len", "1"});
}

TEST(Prefix, IsSeenByAll) {
  EXPECT_THAT(to_lines(prefix(2), lengths(4, 4)), ElementsAre("##..", "##..", "###.", "####"));
  EXPECT_THAT(to_lines(prefix(9), lengths(2, 2)), ElementsAre("##", "##"));
  EXPECT_THAT(([] { prefix(-1); }), Refuses("length", "-1"));
}

TEST(Rows, OneRangePerQuery) {
  EXPECT_THAT(to_lines(Mask::rows({{0, 2}, {1, 1}, {1, 9}, {-3, 1}}), lengths(4, 3)),
              ElementsAre("##.", "...", ".##", "#.."));
  expect_refused(Mask::rows({{0, 1}}), lengths(2, 3), {"q_len", "2"});
}

TEST(KeyLengths, HideThePadding) {
  const ScoreShape shape{2, 1, 1, 3};
  EXPECT_THAT(to_lines(key_lengths({3, 1}), shape, kHashGlyphs, 0), ElementsAre("###"));
  EXPECT_THAT(to_lines(key_lengths({3, 1}), shape, kHashGlyphs, 1), ElementsAre("#.."));
  expect_refused(key_lengths({3}), shape, {"batch", "2"});
  expect_refused(key_lengths({3, 4}), shape, {"lengths[1]", "4"});
  EXPECT_THAT(([] { key_lengths({1, -2}); }), Refuses("lengths[1]", "-2"));
}

TEST(KeyPadding, HidesThePaddingTokens) {
  const Tensor<std::int64_t> ids({2, 6}, {5, 3, 7, 2, 0, 0, 8, 1, 4, 6, 9, 0});
  const Mask mask = key_padding(ids, 0);
  const ScoreShape shape{2, 4, 1, 6};
  EXPECT_THAT(to_lines(mask, shape, kHashGlyphs, 0, 3), ElementsAre("####.."));
  EXPECT_THAT(to_lines(mask, shape, kHashGlyphs, 1, 0), ElementsAre("#####."));
  const Tensor<std::int64_t> flat({3}, {1, 2, 3});
  EXPECT_THAT(([&] { key_padding(flat, 0); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("[3], expected [batch, kv_len]")));
}

TEST(Documents, SeeOnlyThemselves) {
  EXPECT_THAT(to_lines(documents({0, 2, 2, 3}), lengths(3, 3)), ElementsAre("##.", "##.", "..#"));
  EXPECT_THAT(to_lines(documents({0, 2, 3}) & causal(), lengths(3, 3)),
              ElementsAre("#..", "##.", "..#"));
  EXPECT_THAT(to_lines(documents({0, 2, 3}), lengths(1, 3, 2)), ElementsAre("..#"));
  expect_refused(documents({0, 2}), lengths(3, 3), {"last boundary", "2"});
  expect_refused(documents({0, 3}), lengths(2, 3, 2), "positions 2 to 4, expected 0 to 3");
  EXPECT_THAT(([] {
                documents({0, 3, 2});
              }),
              ThrowsMessage<InvalidArgument>(HasSubstr("(0, 3, 2)")));
  EXPECT_THAT(([] { documents({}); }), ThrowsMessage<InvalidArgument>(HasSubstr("start at 0")));
}

TEST(TensorMasks, SayWhatTrueMeans) {
  const Tensor<bool> flags({2, 3}, {true, false, true, false, false, true});
  EXPECT_THAT(to_lines(Mask::allow(flags), lengths(2, 3)), ElementsAre("#.#", "..#"));
  EXPECT_THAT(to_lines(Mask::block(flags), lengths(2, 3)), ElementsAre(".#.", "##."));
}

TEST(TensorMasks, BroadcastFromTheRight) {
  const ScoreShape shape{2, 2, 2, 3};
  const Tensor<bool> by_key({3}, {true, false, true});
  EXPECT_THAT(to_lines(Mask::allow(by_key), shape, kHashGlyphs, 1, 1), ElementsAre("#.#", "#.#"));
  const Tensor<bool> by_head({2, 1, 1}, {true, false});
  EXPECT_THAT(to_lines(Mask::allow(by_head), shape, kHashGlyphs, 1, 1), ElementsAre("...", "..."));
  const Tensor<bool> by_batch({2, 1, 1, 1}, {true, false});
  EXPECT_THAT(to_lines(Mask::allow(by_batch), shape, kHashGlyphs, 0, 1), ElementsAre("###", "###"));
  // A view with strides: the transpose of a [3, 2] tensor.
  const Tensor<bool> transposed({3, 2}, {true, false, false, true, true, true});
  EXPECT_THAT(to_lines(Mask::allow(transposed.view().permute({1, 0})), shape),
              ElementsAre("#.#", ".##"));
  const Tensor<bool> wrong({2, 2}, {true, true, true, true});
  expect_refused(Mask::allow(wrong), shape,
                 "Mask::allow: shape [2, 2] does not broadcast to [batch, num_heads, q_len, "
                 "kv_len] = [2, 2, 2, 3]");
  const Tensor<bool> rank5(Shape{1, 1, 1, 1, 3});
  expect_refused(Mask::block(rank5), shape, "Mask::block: shape [1, 1, 1, 1, 3]");
}

TEST(TensorMasks, AdditiveHidesAtMinusInfinity) {
  const Tensor<float> added({1, 3}, {0.5F, -kInfinity, -1e9F});
  const Mask mask = Mask::additive(added);
  EXPECT_THAT(to_lines(mask, lengths(1, 3)), ElementsAre("#.#"));
  EXPECT_THAT(elements_of(materialize_additive(mask & Mask::additive(added), lengths(1, 3))),
              ElementsAre(1.0F, -kInfinity, -2e9F));
}

TEST(TensorMasks, MayOwnTheirTensor) {
  const auto make = [] { return Mask::block(Tensor<bool>({2}, {true, false})); };
  const Mask copy = make() & Mask();
  EXPECT_THAT(to_lines(copy, lengths(1, 2)), ElementsAre(".#"));
}

TEST(Where, AsksTheFunction) {
  const Mask mask = Mask::where(
      [](int b, int h, int q_idx, int kv_idx) { return (b + h + q_idx + kv_idx) % 2 == 0; });
  EXPECT_THAT(to_lines(mask, {2, 2, 2, 3}, kHashGlyphs, 0, 0), ElementsAre("#.#", ".#."));
  EXPECT_THAT(to_lines(mask, {2, 2, 2, 3}, kHashGlyphs, 1, 0), ElementsAre(".#.", "#.#"));
  EXPECT_THAT(to_lines(mask, lengths(1, 3, 1)), ElementsAre(".#."));
}

TEST(And, IsVisibleWhereAllAllow) {
  const Mask odd_keys = Mask::where([](int, int, int, int kv_idx) { return kv_idx % 2 == 1; });
  const Mask both = causal() & sliding_window(2, 0) & odd_keys;
  EXPECT_THAT(to_lines(both, lengths(5, 5)),
              ElementsAre(".....", ".#...", ".#...", ".#.#.", "...#."));
  EXPECT_EQ(both.description(), "causal & sliding_window(2, 0) & where(function)");
}

// External memory may hold any byte.
TEST(Mask, EveryByteButZeroIsTrue) {
  const std::vector<std::uint8_t> bytes{7, 0, 1, 0, 255, 2};
  const TensorView<const bool> flags(reinterpret_cast<const bool*>(bytes.data()), {2, 3});
  EXPECT_THAT(to_lines(Mask::allow(flags), lengths(2, 3)), ElementsAre("#.#", ".##"));
  EXPECT_THAT(to_lines(Mask::block(flags), lengths(2, 3)), ElementsAre(".#.", "#.."));
  EXPECT_THAT(elements_of(pad_keys(flags, 3)), ElementsAre(true, false, true, false, true, true));
}

TEST(Materialize, BothPolaritiesAndAdditive) {
  const ScoreShape shape = lengths(2, 2);
  EXPECT_THAT(elements_of(materialize_allow(causal(), shape)),
              ElementsAre(true, false, true, true));
  EXPECT_THAT(elements_of(materialize_block(causal(), shape)),
              ElementsAre(false, true, false, false));
  EXPECT_THAT(elements_of(materialize_additive(causal(), shape)), ElementsAre(0, -kInfinity, 0, 0));
  EXPECT_EQ(materialize_allow(causal_top_left(), {2, 3, 0, 4}).shape(), (Shape{2, 3, 0, 4}));
}

TEST(Lines, SpeakInSeveralGlyphs) {
  EXPECT_THAT(to_lines(causal(), lengths(2, 2), kCheckGlyphs), ElementsAre("✓ ✗", "✓ ✓"));
  EXPECT_THAT(to_lines(causal(), lengths(2, 2), kBlockGlyphs), ElementsAre("█·", "██"));
  EXPECT_THAT(([] { to_lines(Mask(), lengths(2, 2), kHashGlyphs, 1); }), Refuses("batch", "1"));
}

TEST(Description, NamesEveryPart) {
  EXPECT_EQ(causal_bottom_right().description(), "causal(bottom_right)");
  EXPECT_EQ(causal(3).description(), "causal(offset(3))");
  EXPECT_EQ(sliding_window(kUnbounded, 4, Alignment::top_left()).description(),
            "sliding_window(unbounded, 4, top_left)");
  EXPECT_EQ(key_lengths({3, 4}).description(), "key_lengths(3, 4)");
  EXPECT_EQ(Mask::allow(Tensor<bool>(Shape{2, 3})).description(), "allow[2, 3]");
}

// The ranges of structural masks are constexpr.
static_assert((RowRange{0, 5} & RowRange{2, 9}) == RowRange{2, 5});

}  // namespace
}  // namespace heed
