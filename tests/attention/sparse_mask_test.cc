// Masks of few keys, and masks joined by |.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "heed/mask.h"
#include "heed/plan.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/tensors.h"

namespace heed {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::grad_out_for;
using testing_support::gradients_of;
using testing_support::Inputs;
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
  EXPECT_EQ(three.description(),
            "((causal & sliding_window(1, 0)) | columns(3) | global_tokens(1))");
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
  EXPECT_THAT([] { longformer(-1, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("longformer: window is -1")));
  EXPECT_THAT([] { sparse_transformer(0); },
              ThrowsMessage<InvalidArgument>(HasSubstr("strided: stride is 0")));
}

// Tiles that nobody sees are not visited.
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
}

class SparseMaskOn : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(SparseMaskOn);

// The same bits as of the mask as booleans.
TEST_P(SparseMaskOn, HasTheBitsOfBooleans) {
  const std::vector<std::function<Mask(const Alignment&)>> masks{
      [](const Alignment& at) { return longformer(40, 3, at); },
      [](const Alignment& at) { return sparse_transformer(37, at); },
      [](const Alignment& at) { return dilated(9, 7, at); },
      [](const Alignment& at) { return columns(50) | sliding_window(3, 0, at); },
      [](const Alignment& at) { return (strided(100, at) | global_tokens(2, at)) & causal(at); },
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

}  // namespace
}  // namespace heed
