// The decode path, in which the rows of a key head form a panel of few rows, gives the bits of
// panels of whole vectors, for all types, layouts, masks and threads.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "attention/masks/sinks_and_window.h"
#include "attention/plan/fused.h"
#include "attention/request/call.h"
#include "heed/core/parallel.h"
#include "support/fused.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing_support::converted;
using testing_support::normal;
using testing_support::same_bits;

class FewRows : public testing_support::TargetTest {
 protected:
  template <class T>
  struct Result {
    Tensor<T> out;
    Tensor<float> lse;
  };

  template <class T>
  static Result<T> attend(TensorView<const T> query, TensorView<const T> key,
                          TensorView<const T> value, const AttentionOptions& options, bool are_few,
                          int threads = 1) {
    const auto request = check_request("test", check_shapes("test", query, key, value), options);
    auto schedule = engine::make_schedule(table(), request, Pass::kForward, threads);
    EXPECT_TRUE(schedule.has_few_rows);
    EXPECT_FALSE(schedule.copies_key());
    if (!are_few) schedule = engine::in_whole_vectors(schedule);
    Result<T> result{
        Tensor<T>({query.extent(0), query.extent(1), query.extent(2), value.extent(3)}),
        Tensor<float>({query.extent(0), query.extent(1), query.extent(2)})};
    const ForwardCall<float> call{call_of(request, query, key, value), rows_of(result.out.view()),
                                  result.lse};
    set_num_threads(threads);
    FusedPass<float>(table(), schedule, Pass::kForward).forward({&call, 1});
    set_num_threads(0);
    return result;
  }

  template <class T>
  static void expect_same(TensorView<const T> query, TensorView<const T> key,
                          TensorView<const T> value, const AttentionOptions& options = {}) {
    const auto few = attend<T>(query, key, value, options, true);
    const auto wide = attend<T>(query, key, value, options, false);
    EXPECT_TRUE(same_bits(few.out, wide.out));
    EXPECT_TRUE(same_bits(few.lse, wide.lse));
  }

  static std::int64_t most_rows() {
    return std::min(kernels::kMostFewRows, kernels::kPanelVectors * table().lanes);
  }
};
HEED_RUN_ON_EVERY_TARGET(FewRows);

TEST_P(FewRows, GroupsOfEverySizeInEveryType) {
  for (std::int64_t group = 1; group <= most_rows(); ++group) {
    SCOPED_TRACE(group);
    const auto query = normal<float>({2, 2 * group, 1, 40}, 1);
    const auto key = normal<float>({2, 2, 1300, 40}, 2);
    const auto value = normal<float>({2, 2, 1300, 72}, 3);
    expect_same<float>(query, key, value);
    const auto half_query = converted<Float16>(query);
    const auto half_key = converted<Float16>(key);
    const auto half_value = converted<Float16>(value);
    expect_same<Float16>(half_query, half_key, half_value);
    const auto brain_query = converted<BFloat16>(query);
    const auto brain_key = converted<BFloat16>(key);
    const auto brain_value = converted<BFloat16>(value);
    expect_same<BFloat16>(brain_query, brain_key, brain_value);
  }
}

// Queries at the end of a sequence, each of which sees different keys.
TEST_P(FewRows, MasksOfIntervals) {
  const std::int64_t q_len = most_rows() / 2;
  const auto query = normal<float>({1, 4, q_len, 24}, 1);
  const auto key = normal<float>({1, 2, 700, 24}, 2);
  const auto value = normal<float>({1, 2, 700, 24}, 3);
  for (const Mask& mask :
       {causal_bottom_right(),
        causal_bottom_right() & sliding_window(130, 0, Alignment::bottom_right()),
        sliding_window(3, 1, Alignment::bottom_right()), causal_top_left()}) {
    SCOPED_TRACE(mask.description());
    expect_same<float>(query, key, value, {.mask = mask});
  }
}

// An irregular mask is added to scores between the two products.
TEST_P(FewRows, IrregularMasks) {
  const std::int64_t q_len = most_rows() / 2;
  const auto query = normal<float>({2, 4, q_len, 24}, 1);
  const auto key = normal<float>({2, 2, 1300, 24}, 2);
  const auto value = normal<float>({2, 2, 1300, 40}, 3);
  Tensor<bool> some({2, 4, q_len, 1300});
  Tensor<float> added({4, 1, 1300});
  const auto drawn = normal<float>(some.shape(), 4);
  for (std::size_t i = 0; i < some.elements().size(); ++i) {
    some.elements()[i] = drawn.elements()[i] > 0;
    if (i < added.elements().size()) added.elements()[i] = drawn.elements()[i];
  }
  for (std::int64_t k = 300; k < 700; ++k) {
    added(1, 0, k) = -std::numeric_limits<float>::infinity();
    added(2, 0, k) = -1e9F;
    added(3, 0, k) = std::numeric_limits<float>::lowest();
  }
  Tensor<float> nothing({1, 1, 1300});
  for (float& number : nothing.elements()) number = -1e9F;
  std::vector<std::int64_t> parents(static_cast<std::size_t>(q_len), 0);
  parents.front() = -1;
  const Mask none = Mask::where([](auto, auto, auto, auto k) { return k < 0; });
  for (const Mask& mask :
       {Mask::where([](auto b, auto h, auto q, auto k) { return (b + h + q * 7 + k) % 3 != 0; }),
        causal_bottom_right() & Mask::where([](auto, auto, auto, auto k) { return k % 400 < 9; }),
        sinks_and_window(4, 700), causal_bottom_right() & sinks_and_window(130, 260),
        Mask::allow(some), Mask::block(some), Mask::additive(added), Mask::additive(nothing),
        Mask::tree(parents), none}) {
    SCOPED_TRACE(mask.description());
    const AttentionOptions options{.mask = mask, .query_offset = 1300 - q_len};
    expect_same<float>(query, key, value, options);
    expect_same<Float16>(converted<Float16>(query), converted<Float16>(key),
                         converted<Float16>(value), options);
  }
}

// Rows of keys with large strides, as in memory [batch, length, heads, dim].
TEST_P(FewRows, HeadsSideBySideInMemory) {
  const auto query = normal<float>({1, 8, 1, 32}, 1);
  const auto key = normal<float>({1, 400, 4, 32}, 2);
  const auto value = normal<float>({1, 400, 4, 32}, 3);
  expect_same<float>(query, key.view().permute({0, 2, 1, 3}), value.view().permute({0, 2, 1, 3}));
}

TEST_P(FewRows, HiddenNumbersTouchNothing) {
  const auto query = normal<float>({1, 2, 2, 16}, 1);
  auto key = normal<float>({1, 1, 300, 16}, 2);
  auto value = normal<float>({1, 1, 300, 40}, 3);
  const AttentionOptions options{.mask = sliding_window(20, 20, Alignment::top_left())};
  const auto expected = attend<float>(query, key.view(), value.view(), options, false);
  for (std::int64_t k = 200; k < 300; ++k) {
    for (std::int64_t d = 0; d < 16; ++d) key(0, 0, k, d) = std::numeric_limits<float>::infinity();
    for (std::int64_t d = 0; d < 40; ++d) value(0, 0, k, d) = std::nanf("");
  }
  // Hidden from one of the two rows.
  for (std::int64_t d = 0; d < 40; ++d) value(0, 0, 21, d) = std::nanf("");
  const auto found = attend<float>(query, key.view(), value.view(), options, true);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t d = 0; d < 40; ++d) {
      EXPECT_EQ(found.out(0, h, 0, d), expected.out(0, h, 0, d));
      EXPECT_TRUE(std::isnan(found.out(0, h, 1, d)));
    }
  }
}

TEST_P(FewRows, NumbersThatAnIrregularMaskHidesTouchNothing) {
  const auto query = normal<float>({1, 2, 2, 16}, 1);
  auto key = normal<float>({1, 1, 300, 16}, 2);
  auto value = normal<float>({1, 1, 300, 40}, 3);
  const AttentionOptions options{.mask = sinks_and_window(3, 20), .query_offset = 290};
  const auto expected = attend<float>(query, key.view(), value.view(), options, false);
  for (std::int64_t k = 10; k < 250; ++k) {
    for (std::int64_t d = 0; d < 16; ++d) key(0, 0, k, d) = std::nanf("");
    for (std::int64_t d = 0; d < 40; ++d) value(0, 0, k, d) = std::nanf("");
  }
  // Only the first of a head's two rows sees it; the window of the other begins after 271.
  for (std::int64_t d = 0; d < 40; ++d) value(0, 0, 271, d) = std::nanf("");
  const auto found = attend<float>(query, key.view(), value.view(), options, true);
  for (std::int64_t h = 0; h < 2; ++h) {
    for (std::int64_t d = 0; d < 40; ++d) {
      EXPECT_TRUE(std::isnan(found.out(0, h, 0, d)));
      EXPECT_EQ(found.out(0, h, 1, d), expected.out(0, h, 1, d));
    }
  }
}

// Threads share the keys of a head.
TEST_P(FewRows, DividedKeysHaveTheSameBits) {
  const auto query = normal<float>({1, 3, 1, 64}, 1);
  const auto key = normal<float>({1, 1, 40000, 64}, 2);
  const auto value = normal<float>({1, 1, 40000, 64}, 3);
  for (const Mask& mask :
       {Mask(), Mask::where([](auto, auto, auto, auto k) { return k % 3 > 0; })}) {
    const AttentionOptions options{.mask = mask};
    const auto one = attend<float>(query, key.view(), value.view(), options, true, 1);
    const auto four = attend<float>(query, key.view(), value.view(), options, true, 4);
    EXPECT_TRUE(same_bits(one.out, four.out));
    EXPECT_TRUE(same_bits(one.lse, four.lse));
  }
}

// Scores that are too large for the running softmax are computed again in panels.
TEST_P(FewRows, RowsOfLargeScores) {
  const auto query = normal<float>({1, 2, 1, 8}, 1);
  auto key = normal<float>({1, 1, 200, 8}, 2);
  const auto value = normal<float>({1, 1, 200, 8}, 3);
  for (float& number : key.elements()) number *= 1e7F;
  expect_same<float>(query, key, value);
  const auto half_query = converted<Float16>(query);
  auto half_key = converted<Float16>(normal<float>({1, 1, 200, 8}, 2));
  for (Float16& number : half_key.elements()) number = Float16(static_cast<float>(number) * 1e4F);
  const auto half_value = converted<Float16>(value);
  expect_same<Float16>(half_query, half_key, half_value, {.scale = 100.0F});
}

}  // namespace
}  // namespace heed
