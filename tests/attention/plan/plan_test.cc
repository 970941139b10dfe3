#include "heed/attention/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <sstream>
#include <thread>
#include <type_traits>
#include <vector>

#include "heed/core/data_type.h"
#include "heed/core/parallel.h"
#include "support/heap.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::converted;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

AttentionShapes shapes_of(std::int64_t length, std::int64_t dim) {
  return {.num_heads = 4,
          .num_kv_heads = 2,
          .q_len = length,
          .kv_len = length,
          .head_dim = dim,
          .value_dim = dim};
}

template <class T>
struct BasicPlanInputs {
  Tensor<T> query, key, value, grad_out;

  explicit BasicPlanInputs(const AttentionShapes& s)
      : query(drawn({s.batch, s.num_heads, s.q_len, s.head_dim}, 1)),
        key(drawn({s.batch, s.num_kv_heads, s.kv_len, s.head_dim}, 2)),
        value(drawn({s.batch, s.num_kv_heads, s.kv_len, s.value_dim}, 3)),
        grad_out(drawn({s.batch, s.num_heads, s.q_len, s.value_dim}, 4)) {}

  static Tensor<T> drawn(const Shape& shape, std::uint32_t seed) {
    if constexpr (std::is_same_v<T, double>) {
      return normal<double>(shape, seed);
    } else {
      return converted<T>(normal<float>(shape, seed));
    }
  }
};
using PlanInputs = BasicPlanInputs<float>;

template <class T>
AttentionShapes shapes_in(std::int64_t length, std::int64_t dim) {
  AttentionShapes shapes = shapes_of(length, dim);
  shapes.dtype = data_type_of<T>();
  return shapes;
}

template <class T>
using OptionsFor =
    std::conditional_t<std::is_same_v<T, double>, AttentionOptions64, AttentionOptions>;

TEST(Plan, RunsToTheSameBitsAsAttention) {
  for (const std::int64_t length : {0, 1, 16, 129, 1100}) {
    const AttentionShapes shapes = shapes_of(length, 20);
    const PlanInputs in(shapes);
    const AttentionOptions options{.mask = causal()};
    EXPECT_TRUE(same_bits(plan(shapes, options).run(in.query, in.key, in.value),
                          attention(in.query, in.key, in.value, options)))
        << length;
  }
}

TEST(Plan, WritesIntoTheCallersMemory) {
  const AttentionShapes shapes = shapes_of(200, 16);
  const PlanInputs in(shapes);
  const AttentionPlan planned = plan(shapes, {.mask = causal()});
  const auto expected = attention_with_lse(in.query, in.key, in.value, {.mask = causal()});
  // The output's rows have gaps, and the workspace is unaligned.
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

template <class T>
class PlanOf : public testing::Test {};
using EveryType = testing::Types<float, Float16, BFloat16, double>;
TYPED_TEST_SUITE(PlanOf, EveryType);

TYPED_TEST(PlanOf, RunsToTheSameBitsAsAttention) {
  using T = TypeParam;
  for (const std::int64_t length : {0, 1, 129, 1100}) {
    const AttentionShapes shapes = shapes_in<T>(length, 20);
    const BasicPlanInputs<T> in(shapes);
    const OptionsFor<T> options{.mask = causal(), .softcap = 30};
    const AttentionPlan planned = plan(shapes, options);
    const auto expected = attention_with_lse(in.query, in.key, in.value, options);
    EXPECT_TRUE(same_bits(planned.run(in.query, in.key, in.value), expected.out)) << length;
    Tensor<T> out(expected.out.shape());
    auto lse = expected.lse;
    for (auto& element : lse.elements()) element = 7;
    planned.run_into({.out = out, .lse = lse}, in.query, in.key, in.value);
    EXPECT_TRUE(same_bits(out, expected.out) && same_bits(lse, expected.lse)) << length;
  }
}

TYPED_TEST(PlanOf, RunsBackwardToTheSameBitsAsAttentionBackward) {
  using T = TypeParam;
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  const auto slopes = normal<Real>({4}, 5);
  const auto bias = normal<Real>({4, 1, 150}, 6);
  const auto sinks = normal<Real>({4}, 7);
  OptionsFor<T> options{.mask = causal()};
  options.alibi_slopes = slopes;
  options.bias = bias;
  options.sinks = sinks;
  const AttentionShapes shapes = shapes_in<T>(150, 20);
  const BasicPlanInputs<T> in(shapes);
  const AttentionPlan planned = plan(shapes, options);
  const auto forward = attention_with_lse(in.query, in.key, in.value, options);
  const auto expected =
      attention_backward(in.grad_out, in.query, in.key, in.value, forward, options);
  std::vector<std::byte> workspace(planned.backward_workspace_bytes() + 1);
  for (const std::span<std::byte> memory :
       {std::span<std::byte>(), std::span(workspace).subspan(1)}) {
    const auto found =
        planned.run_backward(in.grad_out, in.query, in.key, in.value, forward, memory);
    EXPECT_TRUE(same_bits(found.query, expected.query));
    EXPECT_TRUE(same_bits(found.key, expected.key));
    EXPECT_TRUE(same_bits(found.value, expected.value));
    EXPECT_TRUE(same_bits(found.alibi_slopes, expected.alibi_slopes));
    EXPECT_TRUE(same_bits(found.bias, expected.bias));
    EXPECT_TRUE(same_bits(found.sinks, expected.sinks));
  }
}

TEST(Plan, RunsBackwardInTheCallersMemory) {
  const AttentionShapes shapes = shapes_of(700, 64);
  const AttentionPlan planned = plan(shapes);
  if (planned.target() == "reference") GTEST_SKIP() << "the reference has no workspace";
  const PlanInputs in(shapes);
  const auto forward = attention_with_lse(in.query, in.key, in.value);
  const std::size_t bytes = planned.backward_workspace_bytes();
  std::vector<std::byte> workspace(bytes);
  const auto extra_bytes = [&](std::span<std::byte> memory) {
    return testing_support::measure_extra_bytes([&] {
      return planned.run_backward(in.grad_out, in.query, in.key, in.value, forward, memory);
    });
  };
  EXPECT_GE(extra_bytes({}), static_cast<std::int64_t>(bytes));
  EXPECT_LT(extra_bytes(workspace), static_cast<std::int64_t>(bytes) / 10);
}

TEST(Plan, RefusesOtherTensorsBackward) {
  const AttentionPlan planned = plan(shapes_of(9, 4));
  const PlanInputs in(shapes_of(9, 4));
  const PlanInputs other(shapes_of(8, 4));
  const auto forward = attention_with_lse(in.query, in.key, in.value);
  EXPECT_THAT(
      ([&] { planned.run_backward(other.grad_out, other.query, other.key, other.value, forward); }),
      Refuses("q_len", "8"));
  EXPECT_THAT(([&] { planned.run_backward(other.grad_out, in.query, in.key, in.value, forward); }),
              Refuses("grad_out", "[1, 4, 8, 4]"));
  if (planned.backward_workspace_bytes() == 0) return;
  std::vector<std::byte> workspace(8);
  EXPECT_THAT(
      ([&] { planned.run_backward(in.grad_out, in.query, in.key, in.value, forward, workspace); }),
      Refuses("workspace", "8"));
}

TEST(Plan, RefusesOtherTypes) {
  const AttentionPlan planned = plan(shapes_of(9, 4));
  const BasicPlanInputs<double> in(shapes_of(9, 4));
  EXPECT_THAT(([&] { (void)planned.run(in.query, in.key, in.value); }),
              ThrowsMessage<InvalidArgument>(HasSubstr(
                  "AttentionPlan::run: the tensors are float64, but float32 was planned")));
  const AttentionPlan in_double = plan(shapes_in<double>(9, 4), AttentionOptions64{});
  const PlanInputs floats(shapes_of(9, 4));
  EXPECT_THAT(([&] { (void)in_double.run(floats.query, floats.key, floats.value); }),
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("the tensors are float32, but float64 was planned")));
}

TEST(Plan, RunsOnManyThreadsAtOnce) {
  const AttentionShapes shapes = shapes_of(150, 16);
  const PlanInputs in(shapes);
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
  const PlanInputs other(shapes_of(8, 4));
  EXPECT_THAT(([&] { (void)planned.run(other.query, other.key, other.value); }),
              Refuses("q_len", "8"));
  const PlanInputs in(shapes_of(9, 4));
  Tensor<float> out({1, 4, 9, 5});
  EXPECT_THAT(([&] { planned.run_into({.out = out}, in.query, in.key, in.value); }),
              Refuses("out", "[1, 4, 9, 5]"));
  Tensor<float> right({1, 4, 9, 4});
  std::vector<std::byte> workspace(8);
  if (planned.workspace_bytes() > 0) {
    EXPECT_THAT(([&] {
                  planned.run_into({.out = right, .workspace = workspace}, in.query, in.key,
                                   in.value);
                }),
                Refuses("workspace", "8"));
  }
}

// Counts by the definition, for shapes that end within tiles and panels.
TEST(Plan, CountsTilesOneByOne) {
  std::vector<RowRange> ranges;
  for (std::int64_t q = 0; q < 100; ++q) ranges.push_back({q * 7 % 300, q * 7 % 300 + q % 3 * 128});
  for (const Mask& mask :
       {Mask(), causal_bottom_right(), causal_top_left(), Mask::rows(ranges),
        sliding_window(150, 30, Alignment::bottom_right()), prefix(256, Alignment::top_left())}) {
    const AttentionPlan planned =
        plan({.q_len = 100, .kv_len = 600, .head_dim = 8, .value_dim = 8}, {.mask = mask});
    const TileCounts found = planned.tiles();
    if (found.keys == 0) GTEST_SKIP() << "the reference has no tiles";
    const auto allowed = materialize_allow(mask, {.q_len = 100, .kv_len = 600});
    TileCounts counts;
    for (std::int64_t q = 0; q < 100; q += found.rows) {
      for (std::int64_t key = 0; key < 600; key += found.keys, ++counts.total) {
        std::int64_t seen = 0;
        std::int64_t cells = 0;
        for (std::int64_t i = q; i < std::min<std::int64_t>(q + found.rows, 100); ++i) {
          for (std::int64_t k = key; k < std::min<std::int64_t>(key + found.keys, 600);
               ++k, ++cells) {
            seen += allowed(0, 0, i, k) ? 1 : 0;
          }
        }
        counts.mixed += seen > 0 && seen < cells ? 1 : 0;
        counts.skipped += seen == 0 ? 1 : 0;
      }
    }
    EXPECT_EQ(found.total, counts.total) << mask.description();
    EXPECT_EQ(found.mixed + found.skipped, counts.mixed + counts.skipped) << mask.description();
    EXPECT_LE(found.skipped, counts.skipped) << mask.description();
  }
}

// Counting one tile at a time would take weeks.
TEST(Plan, CountsTheTilesOfLongSequences) {
  const std::int64_t length = 1'000'000'000;
  const AttentionPlan planned =
      plan({.q_len = 100'000, .kv_len = length}, {.mask = prefix(length, Alignment::top_left())});
  const TileCounts counts = planned.tiles();
  if (counts.keys == 0) GTEST_SKIP() << "the reference has no tiles";
  EXPECT_GT(counts.total, std::int64_t{1'000} * 7'812'500);
  EXPECT_EQ(counts.skipped, 0);
  EXPECT_EQ(counts.mixed, 0);
}

TEST(Plan, ChecksShapesAndOptions) {
  EXPECT_THAT([] { plan({.num_heads = 3, .num_kv_heads = 2}); }, Refuses("num_heads", "3"));
  EXPECT_THAT([] { plan({.q_len = -1}); }, Refuses("q_len", "-1"));
  EXPECT_THAT([] { plan({.q_len = 3, .kv_len = 5}, {.mask = causal()}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("causal")));
  EXPECT_THAT([] { plan({.dtype = DataType::kFloat64}); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("plan: dtype is float64 but the options are AttentionOptions")));
  EXPECT_THAT(
      [] {
        plan({.dtype = DataType::kFloat64, .key_dtype = DataType::kFloat16}, AttentionOptions64{});
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("key_dtype is float16 but the options are AttentionOptions64")));
  EXPECT_THAT([] { plan({}, AttentionOptions64{}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("dtype is float32 but the options are "
                                                       "AttentionOptions64, expected float64")));
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

TEST(Plan, SaysWhatItDoesInDouble) {
  const AttentionPlan planned =
      plan(shapes_in<double>(512, 64), AttentionOptions64{.mask = causal(), .softcap = 30});
  EXPECT_THAT(planned.to_string(), HasSubstr("value [1, 2, 512, 64], float64"));
  EXPECT_THAT(planned.to_string(), HasSubstr("softcap(30)"));
  if (planned.target() == "reference") return;
  const AttentionPlan in_float = plan(shapes_of(512, 64), {.mask = causal(), .softcap = 30});
  EXPECT_EQ(2 * planned.tiles().rows, in_float.tiles().rows);
  EXPECT_GT(planned.tiles().skipped, 0);
  EXPECT_THAT(planned.to_string(), HasSubstr("keys and values are float64 and read where"));
}

TEST(Plan, StagesWhatIsNotFloatOrLiesFarApart) {
  AttentionShapes shapes = shapes_of(512, 64);
  if (plan(shapes).target() == "reference") GTEST_SKIP();
  const auto staging = [&] { return plan(shapes).to_string(); };
  EXPECT_THAT(staging(), HasSubstr("staging     none: keys and values are float32"));
  shapes.key_stride = 1024;
  EXPECT_THAT(staging(), HasSubstr("staging     keys, a tile at a time"));
  shapes.dtype = DataType::kBFloat16;
  EXPECT_THAT(staging(), Not(HasSubstr("staging     none")));
  EXPECT_THAT(staging(), Not(HasSubstr("staging     keys, a tile")));
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
  const PlanInputs in(shapes);
  Tensor<float> out(in.query.shape());
  Tensor<float> lse({shapes.batch, shapes.num_heads, shapes.q_len});
  for (float& element : out.elements()) element = 7;
  for (float& element : lse.elements()) element = 7;
  {
    const testing_support::AllocationLimit limit(bytes / 2);
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
