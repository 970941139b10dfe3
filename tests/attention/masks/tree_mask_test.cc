// Mask::tree compared with its definition: a node sees the keys before the tree, itself and its
// ancestors.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "heed/attention/packed.h"
#include "heed/attention/plan.h"
#include "heed/attention/position.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::expect_accurate;
using testing_support::expected_gradients;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::inaccuracy;
using testing_support::Inputs;
using testing_support::Message;
using testing_support::run;
using testing_support::same_bits;
using testing_support::TargetTest;

using Parents = std::vector<std::int64_t>;

// Returns a random tree of `nodes` nodes; chains are as likely as bushes.
Parents drawn_tree(std::int64_t nodes, std::uint32_t seed) {
  std::mt19937 random(seed);
  Parents parents;
  for (std::int64_t i = 0; i < nodes; ++i) {
    const auto back = static_cast<std::int64_t>(random() % (1 + random() % 8)) + 1;
    parents.push_back(std::max<std::int64_t>(i - back, -1));
  }
  return parents;
}

// True if query q at `position` sees key k.
bool sees(const Parents& parents, std::int64_t q_len, std::int64_t q, std::int64_t position,
          std::int64_t k) {
  const auto nodes = static_cast<std::int64_t>(parents.size());
  const std::int64_t first_key = position - q + q_len - nodes;
  std::int64_t node = q - (q_len - nodes);
  if (node < 0) return k <= position;
  if (k < first_key) return true;
  while (node >= 0 && node != k - first_key) node = parents[static_cast<std::size_t>(node)];
  return node >= 0;
}

TEST(TreeMask, ShowsTheTextBeforeItAndAncestors) {
  const Mask mask = Mask::tree({-1, 0, 0, -1, 3});
  EXPECT_THAT(to_lines(mask, {.q_len = 5, .kv_len = 7}),
              ElementsAre("###....", "####...", "###.#..", "##...#.", "##...##"));
  // Two queries precede the nodes.
  EXPECT_THAT(
      to_lines(mask, {.q_len = 7, .kv_len = 7}),
      ElementsAre("#......", "##.....", "###....", "####...", "###.#..", "##...#.", "##...##"));
  EXPECT_EQ(mask.description(), "tree(-1, 0, 0, -1, 3)");
  EXPECT_EQ(Mask::tree({-1}, Alignment::offset(4)).description(), "tree(-1, offset(4))");
  EXPECT_THAT(to_lines(Mask::tree({}), {.q_len = 2, .kv_len = 3}), ElementsAre("##.", "###"));
}

TEST(TreeMask, IsItsDefinition) {
  for (std::uint32_t seed = 0; seed < 30; ++seed) {
    const std::int64_t nodes = seed % 3 == 0 ? 200 : 1 + seed;
    const Parents parents = drawn_tree(nodes, seed);
    const ScoreShape shape{.q_len = nodes + seed % 4, .kv_len = nodes + 9};
    const Tensor<bool> found = materialize_allow(Mask::tree(parents), shape);
    for (std::int64_t q = 0; q < shape.q_len; ++q) {
      for (std::int64_t k = 0; k < shape.kv_len; ++k) {
        ASSERT_EQ(found(0, 0, q, k),
                  sees(parents, shape.q_len, q, q + shape.kv_len - shape.q_len, k))
            << seed << ": " << q << ", " << k;
      }
    }
  }
}

// Caches filled to different lengths.
TEST(TreeMask, StandsWhereItsSequenceEnds) {
  const Parents parents{-1, 0, 0};
  const ScoreShape shape{.batch = 2, .q_len = 3, .kv_len = 6};
  const Mask ends = Mask::tree(parents, Alignment::bottom_right({6, 4}));
  EXPECT_THAT(to_lines(ends, shape, kHashGlyphs, 0), ElementsAre("####..", "#####.", "####.#"));
  EXPECT_THAT(to_lines(ends, shape, kHashGlyphs, 1), ElementsAre("##....", "###...", "##.#.."));
  ScoreShape offsets = shape;
  offsets.query_offset = std::vector<std::int64_t>{3, 1};
  const Mask by_offset = Mask::tree(parents, Alignment::top_left());
  for (const std::int64_t b : {0, 1}) {
    EXPECT_EQ(to_lines(by_offset, offsets, kHashGlyphs, b), to_lines(ends, shape, kHashGlyphs, b));
  }
}

TEST(TreeMask, RefusesWhatIsNoTree) {
  const auto refused = [](const auto& call, const Message& text) {
    EXPECT_THAT(call, ThrowsMessage<InvalidArgument>(text));
  };
  refused([] { Mask::tree({-1, 1}); }, {"parents[1]", "1"});
  refused([] { Mask::tree({-2}); }, {"parents[0]", "-2"});
  refused(
      [] {
        materialize_allow(Mask::tree({-1, 0, 1}), {.q_len = 2, .kv_len = 5});
      },
      {"q_len", "2"});
  refused(
      [] {
        materialize_allow(Mask::tree({-1, 0, 1}), {.q_len = 3, .kv_len = 2});
      },
      "tree: the nodes of batch entry 0 stand at keys -1 to 2, expected 0 to 2");
  refused(
      [] { materialize_allow(Mask::tree({-1}, Alignment::offset(5)), {.q_len = 1, .kv_len = 5}); },
      "tree: the nodes of batch entry 0 stand at keys 5 to 6, expected 0 to 5");
}

// The tree adds no cost to the keys before it.
TEST(TreeMask, TilesBeforeTheTreeAreNotMasked) {
  const AttentionShapes shapes{.num_heads = 4,
                               .num_kv_heads = 4,
                               .q_len = 30,
                               .kv_len = 1000,
                               .head_dim = 8,
                               .value_dim = 8};
  const AttentionPlan planned = plan(shapes, {.mask = Mask::tree(drawn_tree(30, 1))});
  EXPECT_THAT(planned.to_string(), HasSubstr("mask        tree(-1, 0, 0, -1, 3, "));
  if (planned.target() == "reference") GTEST_SKIP() << "the reference has no tiles";
  const TileCounts tiles = planned.tiles();
  // The nodes' keys, 970 to 999, are in the last of eight tiles.
  EXPECT_EQ(tiles.mixed * 8, tiles.total);
  EXPECT_EQ(tiles.skipped, 0);
  // Two branches of 600 nodes do not see each other.
  Parents two(1200);
  for (std::int64_t i = 0; i < 1200; ++i) {
    two[static_cast<std::size_t>(i)] = i % 600 == 0 ? -1 : i - 1;
  }
  const AttentionPlan branches = plan(
      {.q_len = 1200, .kv_len = 1200, .head_dim = 8, .value_dim = 8}, {.mask = Mask::tree(two)});
  EXPECT_GT(branches.tiles().skipped, branches.tiles().total * 3 / 5);
}

class TreeMaskKernels : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(TreeMaskKernels);

TEST_P(TreeMaskKernels, FollowTheReference) {
  for (const std::int64_t nodes : {1, 37, 150}) {
    const Inputs in({.batch = 2,
                     .num_heads = 4,
                     .num_kv_heads = 2,
                     .q_len = nodes + 2,
                     .kv_len = 400,
                     .head_dim = 16,
                     .value_dim = 9});
    const AttentionOptions options{
        .mask = Mask::tree(drawn_tree(nodes, 5), Alignment::bottom_right({400, 333})) &
                key_lengths({400, 333})};
    expect_accurate(table(), in, options, std::to_string(nodes) + " nodes");
    const Tensor<float> grad_out = grad_out_for(in);
    EXPECT_EQ(inaccuracy(gradients_of(table(), grad_out, in, options),
                         expected_gradients(grad_out, in, options)),
              "");
  }
}

// A node's result is that of its path alone; other branches do not matter.
TEST_P(TreeMaskKernels, OtherBranchesTouchNothing) {
  const std::int64_t nodes = 40;
  const Parents parents = drawn_tree(nodes, 3);
  const Inputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = nodes, .kv_len = 300});
  const AttentionOptions options{.mask = Mask::tree(parents)};
  const auto clean = run(table(), in, options);
  for (const std::int64_t hidden : {0, 7, 39}) {
    Inputs poisoned = in;
    for (std::int64_t d = 0; d < 16; ++d) {
      poisoned.key(0, 0, 300 - nodes + hidden, d) = std::numeric_limits<float>::quiet_NaN();
      poisoned.value(0, 0, 300 - nodes + hidden, d) = std::numeric_limits<float>::infinity();
    }
    const auto found = run(table(), poisoned, options);
    for (std::int64_t q = 0; q < nodes; ++q) {
      const auto row = [&](const auto& of) { return to_tensor(of.out.view().slice(2, q, q + 1)); };
      EXPECT_EQ(same_bits(row(found), row(clean)),
                !sees(parents, nodes, q, 300 - nodes + q, 300 - nodes + hidden))
          << q << ", " << hidden;
    }
  }
}

TEST(TreeMask, MasksEachPackedSequence) {
  const Parents parents{-1, 0, 0, 2};
  const auto query = testing_support::normal<float>({10, 2, 8}, 1);
  const auto key = testing_support::normal<float>({21, 2, 8}, 2);
  const std::vector<std::int64_t> q_at{0, 4, 10};
  const std::vector<std::int64_t> k_at{0, 9, 21};
  const AttentionOptions options{.mask = Mask::tree(parents)};
  const auto out = attention_packed(query, key, key, {q_at, k_at}, options);
  for (std::size_t i = 0; i < 2; ++i) {
    const auto of = [&](FloatView packed, const std::vector<std::int64_t>& at) {
      return packed.slice(0, at[i], at[i + 1]).permute({1, 0, 2}).to_rank(4);
    };
    const auto alone = attention(of(query, q_at), of(key, k_at), of(key, k_at), options);
    EXPECT_TRUE(same_bits(to_tensor(of(out, q_at)), alone)) << i;
  }
}

}  // namespace
}  // namespace heed
