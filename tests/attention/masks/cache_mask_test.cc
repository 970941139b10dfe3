// Masks for caches: queries at the end of sequences of different lengths, and masks with fewer keys
// than the cache holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "heed/attention.h"
#include "heed/attention/mask.h"
#include "heed/attention/reference.h"
#include "support/fused.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing_support::elements_of;
using testing_support::expect_refused;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::TargetTest;

const std::vector<std::int64_t> kLengths{5, 3, 1, 0};  // of four sequences with three queries each
const ScoreShape kShape{.batch = 4, .q_len = 3, .kv_len = 5};

std::vector<std::string> lines(const Mask& mask, std::int64_t batch) {
  return to_lines(mask, kShape, kHashGlyphs, batch);
}

TEST(CacheMask, QueriesStandAtTheEndOfTheirSequence) {
  const Mask mask = causal(Alignment::bottom_right(kLengths));
  EXPECT_THAT(lines(mask, 0), ElementsAre("###..", "####.", "#####"));
  EXPECT_THAT(lines(mask, 1), ElementsAre("#....", "##...", "###.."));
  EXPECT_THAT(lines(mask, 2), ElementsAre(".....", ".....", "#...."));
  EXPECT_THAT(lines(mask, 3), ElementsAre(".....", ".....", "....."));
  EXPECT_EQ(mask.description(), "causal(bottom_right(5, 3, 1, 0))");
}

TEST(CacheMask, WindowsGoAlong) {
  const Mask mask = sliding_window(1, 1, Alignment::bottom_right(kLengths)) & key_lengths(kLengths);
  EXPECT_THAT(lines(mask, 0), ElementsAre(".###.", "..###", "...##"));
  EXPECT_THAT(lines(mask, 1), ElementsAre("##...", "###..", ".##.."));
  EXPECT_THAT(lines(mask, 2), ElementsAre(".....", "#....", "#...."));
}

// A single length for all entries equals bottom_right() over keys cut to that length.
TEST(CacheMask, IsBottomRightOfTheKeysThatAreThere) {
  const auto query = normal<float>({1, 2, 3, 8}, 1);
  const auto key = normal<float>({1, 2, 7, 8}, 2);
  const auto value = normal<float>({1, 2, 7, 8}, 3);
  const auto cached = attention(query, key, value, {.mask = causal(Alignment::bottom_right({4}))});
  const auto cut = attention(query, key.view().slice(2, 0, 4), value.view().slice(2, 0, 4),
                             {.mask = causal_bottom_right()});
  EXPECT_TRUE(testing_support::same_bits(cached, cut));
}

class CacheMaskKernels : public TargetTest {};
HEED_RUN_ON_EVERY_TARGET(CacheMaskKernels);

TEST_P(CacheMaskKernels, FollowTheReference) {
  const testing_support::Inputs in(
      {.batch = 3, .num_heads = 2, .q_len = 50, .kv_len = 300, .head_dim = 16, .value_dim = 16});
  const std::vector<std::int64_t> lengths{300, 130, 20};
  testing_support::expect_accurate(
      table(), in, {.mask = causal(Alignment::bottom_right(lengths)) & key_lengths(lengths)},
      "causal");
  testing_support::expect_accurate(
      table(), in, {.mask = sliding_window(40, 3, Alignment::bottom_right(lengths))}, "window");
}

TEST(CacheMask, MissingKeysAreHidden) {
  const Tensor<bool> allowed({2, 3}, {true, false, true, false, true, true});
  const Tensor<bool> longer = pad_keys(allowed, 5);
  ASSERT_EQ(longer.shape(), (Shape{2, 5}));
  EXPECT_THAT(longer.elements(),
              ElementsAre(true, false, true, false, false, false, true, true, false, false));
  const Tensor<float> added({1, 2}, {3, 4});
  const float hidden = -std::numeric_limits<float>::infinity();
  EXPECT_THAT(elements_of(pad_keys(added, 3)), ElementsAre(3, 4, hidden));
  EXPECT_THAT(elements_of(pad_keys(added, 2)), ElementsAre(3, 4));
  EXPECT_THAT(elements_of(pad_keys(added.view().slice(1, 0, 0), 2)), ElementsAre(hidden, hidden));
  // Any strides.
  EXPECT_THAT(elements_of(pad_keys(allowed.view().permute({1, 0}), 3)),
              ElementsAre(true, false, false, false, true, false, true, true, false));
}

TEST(CacheMask, RefusesMisuse) {
  const auto check = [](const std::vector<std::int64_t>& lengths, std::int64_t query_offset = 0) {
    ScoreShape shape = kShape;
    shape.query_offset = query_offset;
    return [=] { materialize_allow(causal(Alignment::bottom_right(lengths)), shape); };
  };
  expect_refused(check({5, 3, 1}), {"batch", "4"});
  expect_refused(check({5, 3, 1, 6}), {"lengths[3]", "6"});
  expect_refused(check({5, 3, 1, -1}), {"lengths[3]", "-1"});
  expect_refused(check(kLengths, 2), {"query_offset", "2"});
  const Tensor<bool> allowed({2, 3});
  expect_refused([&] { pad_keys(allowed, 2); }, {"mask", "[2, 3]"});
  expect_refused([] { pad_keys(Tensor<float>(Shape{}), 2); }, {"mask", "[]"});
}

}  // namespace
}  // namespace heed
