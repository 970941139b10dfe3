// Products of bfloat16 in pairs, where the processor has them: held to what plain loops make of the
// same numbers, rounded at the same places.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/calls.h"
#include "attention/engine/half_rules.h"
#include "attention/gradient_tensors.h"
#include "heed/convert.h"
#include "heed/kv_cache.h"
#include "heed/parallel.h"
#include "heed/position.h"
#include "heed/reference.h"
#include "support/drawn_attention.h"
#include "support/exact.h"
#include "support/fused.h"
#include "support/gradients.h"
#include "support/half_calls.h"
#include "support/kernel_tables.h"
#include "support/tensors.h"

namespace heed {
namespace {

using testing_support::attention_case;
using testing_support::AttentionCase;
using testing_support::converted;
using testing_support::DrawnAttention;
using testing_support::exact_of;
using testing_support::exactly;
using testing_support::ExactOptions;
using testing_support::HalfInputs;
using testing_support::HalfViews;
using testing_support::Inputs;
using testing_support::InputViews;
using testing_support::Judgement;
using testing_support::largest_magnitude;
using testing_support::normal;
using testing_support::Path;
using testing_support::request_of;
using testing_support::same_bits;
using testing_support::same_result;
using testing_support::Sizes;

// The table that multiplies pairs, or null.
const kernels::KernelTable* table_of_pairs() {
  for (const auto* table : kernels::supported_kernels()) {
    if (table->in_pairs != nullptr && !table->in_pairs->multiplies_tiles()) return table;
  }
  return nullptr;
}

AttentionOutput<float> attend(const HalfViews& in, const AttentionOptions& options,
                              const Path& path = {}) {
  return testing_support::attend(*table_of_pairs(), in, options, path);
}

std::string inaccuracy(const HalfInputs& in, const AttentionOptions& options) {
  return testing_support::inaccuracy(*table_of_pairs(), in, options);
}

class Bfloat16Pairs : public testing::Test {
 protected:
  void SetUp() override {
    if (table_of_pairs() == nullptr) GTEST_SKIP() << "this processor multiplies no pairs";
  }
};

TEST_F(Bfloat16Pairs, AwkwardLengths) {
  for (const std::int64_t q_len : {1, 2, 15, 16, 17, 47, 48, 49, 129}) {
    for (const std::int64_t kv_len : {1, 2, 3, 7, 8, 9, 127, 128, 129, 130, 257}) {
      const HalfInputs in({.q_len = q_len, .kv_len = kv_len, .head_dim = 8, .value_dim = 5});
      for (const Mask& mask : {Mask(), causal_bottom_right(), causal_top_left()}) {
        EXPECT_EQ(inaccuracy(in, {.mask = mask}), "")
            << q_len << "x" << kv_len << " " << mask.description();
      }
    }
  }
}

TEST_F(Bfloat16Pairs, AwkwardHeadSizes) {
  for (const std::int64_t head_dim : {0, 1, 2, 3, 15, 16, 17, 31, 33, 64, 80, 127, 255, 256}) {
    for (const std::int64_t value_dim : {std::int64_t{1}, std::int64_t{18}, head_dim}) {
      const HalfInputs in({.num_heads = 2,
                           .num_kv_heads = 2,
                           .q_len = 50,
                           .kv_len = 131,
                           .head_dim = head_dim,
                           .value_dim = value_dim});
      EXPECT_EQ(inaccuracy(in, {}), "") << head_dim << "/" << value_dim;
    }
  }
}

TEST_F(Bfloat16Pairs, NoKeysAndNoQueries) {
  EXPECT_EQ(inaccuracy(HalfInputs(Sizes{.q_len = 3, .kv_len = 0}), {}), "");
  EXPECT_TRUE(attend(HalfInputs(Sizes{.q_len = 0}), {}).out.empty());
  EXPECT_TRUE(attend(HalfInputs(Sizes{.value_dim = 0}), {}).out.empty());
}

// The error of a result is that of its weights: rounded, each by up to 2⁻⁹ of itself.
TEST_F(Bfloat16Pairs, LongSequences) {
  for (const std::int64_t dim : {64, 128}) {
    const HalfInputs in({.q_len = 100, .kv_len = 5000, .head_dim = dim, .value_dim = dim});
    const auto found = attend(in, {});
    const auto plain = reference::attention(in.query, in.key, in.value);
    EXPECT_EQ(Judgement{}("out", found.out, plain.out, exact_of(in, {}).out), "");
  }
}

AttentionCase drawn_case(bool modifies) {
  AttentionCase drawn = *attention_case(modifies);
  drawn.relative = 0;  // learned vectors are added to values in float
  return drawn;
}

RC_GTEST_FIXTURE_PROP(Bfloat16Pairs, DrawnProblems, (bool modifies)) {
  if (table_of_pairs() == nullptr) return;  // SetUp() skips no property
  const DrawnAttention drawn(drawn_case(modifies));
  const HalfInputs in(drawn.views());
  RC_ASSERT(inaccuracy(in, drawn.options()) == "");
}

RC_GTEST_FIXTURE_PROP(Bfloat16Pairs, ThreadsAndLanesChangeNoBit, (bool modifies)) {
  if (table_of_pairs() == nullptr) return;  // SetUp() skips no property
  const DrawnAttention drawn(drawn_case(modifies));
  const HalfInputs in(drawn.views());
  const auto expected = attend(in, drawn.options(), {.few_rows = false});
  RC_ASSERT(same_result(attend(in, drawn.options()), expected));
  RC_ASSERT(same_result(attend(in, drawn.options(), {.few_rows = false, .threads = 3}), expected));
}

TEST_F(Bfloat16Pairs, ARowAloneHasTheSameBits) {
  testing_support::expect_a_row_alone_has_the_same_bits(*table_of_pairs(), 66, 35);
}

TEST_F(Bfloat16Pairs, LayoutsChangeNoBit) {
  testing_support::expect_layouts_change_no_bit(*table_of_pairs(), 7);
  testing_support::expect_layouts_change_no_bit(*table_of_pairs(), 16);
}

TEST_F(Bfloat16Pairs, HiddenNumbersTouchNothing) {
  testing_support::expect_hidden_numbers_touch_nothing(*table_of_pairs(), 16, 40);
}
// A cache of bfloat16, whose keys lie as columns, has the bits of tensors: in prefill, in chunks
// and token by token.
TEST_F(Bfloat16Pairs, CachesHaveTheSameBits) {
  for (const std::int64_t dim : {24, 25}) {
    const HalfInputs in({.num_heads = 4,
                         .num_kv_heads = 2,
                         .q_len = 300,
                         .kv_len = 300,
                         .head_dim = dim,
                         .value_dim = 10});
    for (const Precision precision : {Precision::kFast, Precision::kExact}) {
      const AttentionOptions options{.mask = causal(), .precision = precision};
      const auto whole = attention(in.query, in.key, in.value, options);
      for (const std::int64_t page_size : {16, 128}) {
        KvSequence sequence({.num_kv_heads = 2,
                             .head_dim = dim,
                             .value_dim = 10,
                             .key_storage = KvStorage::kBFloat16,
                             .value_storage = KvStorage::kBFloat16,
                             .page_size = page_size});
        std::int64_t at = 0;
        for (const std::int64_t count : {1, 2, 29, 1, 100, 1, 128, 38}) {
          const auto some = [&](const Tensor<BFloat16>& x) {
            return BFloat16View(x).slice(2, at, at + count);
          };
          sequence.append(some(in.key), some(in.value));
          EXPECT_TRUE(same_bits(attend(some(in.query), sequence, options), to_tensor(some(whole))))
              << dim << " " << page_size << " " << at;
          at += count;
        }
      }
    }
  }
}

// Scores that are too large for the running softmax.
TEST_F(Bfloat16Pairs, RowsOfLargeScores) {
  const HalfInputs in({.q_len = 20, .kv_len = 200, .head_dim = 8, .value_dim = 8}, 1e7F);
  const auto found = attend(in, {});
  const AttentionOptions exact{.precision = Precision::kExact};
  const auto plain = reference::attention(in.query, in.key, in.value, exact);
  EXPECT_EQ((Judgement{.always_allowed = 1e-3}("out", found.out, plain.out, exact_of(in, {}).out)),
            "");
}

TEST_F(Bfloat16Pairs, ExactIsTheFloatResultRounded) {
  const HalfInputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 75, .kv_len = 260});
  const AttentionOptions exact{.mask = causal_bottom_right(), .precision = Precision::kExact};
  const auto found = attention(in.query, in.key, in.value, exact);
  const auto floats = attention(converted<float>(in.query), converted<float>(in.key),
                                converted<float>(in.value), exact);
  EXPECT_TRUE(same_bits(found, converted<BFloat16>(floats)));
  const AttentionOptions fast{.mask = causal_bottom_right()};
  if (testing_support::multiplies_pairs()) {
    EXPECT_FALSE(same_bits(found, attention(in.query, in.key, in.value, fast)));
  }
}

TEST_F(Bfloat16Pairs, ThePlanSaysSo) {
  if (!testing_support::multiplies_pairs()) GTEST_SKIP();
  AttentionShapes shapes{.q_len = 64, .kv_len = 64, .head_dim = 64, .value_dim = 64};
  shapes.dtype = DataType::kBFloat16;
  EXPECT_NE(plan(shapes).to_string().find("products    of bfloat16 in pairs"), std::string::npos);
  const AttentionOptions exact{.precision = Precision::kExact};
  EXPECT_NE(plan(shapes, exact).to_string().find("products    of float32"), std::string::npos);
}

// What numbers lack when they are rounded to bfloat16.
Tensor<BFloat16> rest_of(const Tensor<float>& numbers) {
  auto rest = converted<float>(converted<BFloat16>(numbers));
  for (std::int64_t i = 0; i < rest.num_elements(); ++i) {
    rest.data()[i] = numbers.data()[i] - rest.data()[i];
  }
  return converted<BFloat16>(rest);
}

// How the way back is computed, and of which out: as floats, or rounded and what that lacks.
struct WayBack {
  int threads = 1;
  bool reads_floats = false;
};

// Gradients before they are rounded to bfloat16.
AttentionGradients<float> differentiate(const HalfViews& in, const Tensor<BFloat16>& grad_out,
                                        const AttentionOptions& options, const WayBack& way = {}) {
  const auto& table = *table_of_pairs();
  const auto forward = attend(in, options);
  const auto out = converted<BFloat16>(forward.out);
  const auto low = rest_of(forward.out);
  const auto request = request_of(in, options);
  auto schedule = engine::make_schedule(table, request, Pass::kBackward, way.threads);
  EXPECT_TRUE(schedule.stages_pairs);
  schedule.workers = way.threads;
  GradientTensors<float> gradients(request, in.query.shape(), in.key.shape(), in.value.shape());
  const BackwardCall<float> call{
      call_of(request, in.query, in.key, in.value),
      rows_of(BFloat16View(grad_out)),
      way.reads_floats ? rows_of(FloatView(forward.out)) : rows_of(BFloat16View(out)),
      forward.lse,
      gradients.targets(),
      forward.lse_low,
      way.reads_floats ? Rows{} : rows_of(BFloat16View(low))};
  set_num_threads(way.threads);
  fused_backend<float>(&table).backward({&call, 1}, schedule, {});
  set_num_threads(0);
  return std::move(gradients).take();
}

Tensor<BFloat16> grad_out_for(const HalfInputs& in) {
  return converted<BFloat16>(normal<float>(
      {in.query.extent(0), in.query.extent(1), in.query.extent(2), in.value.extent(3)}, 11));
}

// The same for gradients.
std::string gradient_inaccuracy(const HalfInputs& in, const AttentionOptions& options) {
  const auto grad_out = grad_out_for(in);
  const auto found = differentiate(in, grad_out, options);
  const auto plain = reference::attention_backward(grad_out, in.query, in.key, in.value, options);
  const ExactOptions exact_options(options);
  const auto exact = reference::attention_backward(
      exactly(converted<float>(grad_out)), exactly(converted<float>(in.query)),
      exactly(converted<float>(in.key)), exactly(converted<float>(in.value)), *exact_options);
  // Each is a sum of terms that cancel: as wrong as grad_out · out is of an out whose weights were
  // rounded, times what it stands for, and over rows these errors add up like random steps. Of an
  // option there are few gradients.
  const auto rows =
      static_cast<double>(in.query.extent(0) * in.query.extent(1) * in.query.extent(2));
  const double term = 2 * std::sqrt(static_cast<double>(in.value.extent(3)));
  const auto judge = [&](const char* name, const Tensor<float>& is, const Tensor<float>& by_loops,
                         const Tensor<double>& should_be, double cancelled = 0) {
    const auto count = static_cast<double>(std::max<std::int64_t>(should_be.num_elements(), 1));
    const Judgement judgement{.always_allowed =
                                  0x1p-8 * std::max(1.0, largest_magnitude(should_be)) +
                                  0x1p-9 * term * cancelled * std::sqrt(rows / count)};
    return judgement(name, is, by_loops, should_be);
  };
  // A query and a key are no farther apart, and that is what a slope multiplies.
  std::int64_t farthest = 0;
  for (const std::int64_t offset : options.query_offset.values()) {
    farthest =
        std::max(farthest, std::abs(offset) + std::max(in.query.extent(2), in.key.extent(2)));
  }
  // Queries and keys are standard normal numbers.
  const double root_of_dim = std::sqrt(static_cast<double>(in.query.extent(3)));
  const double row = options.scale ? std::abs(double{*options.scale}) * root_of_dim : 1;
  return judge("query", found.query, plain.query, exact.query, row) +
         judge("key", found.key, plain.key, exact.key, row) +
         judge("value", found.value, plain.value, exact.value) +
         judge("alibi_slopes", found.alibi_slopes, plain.alibi_slopes, exact.alibi_slopes,
               static_cast<double>(farthest)) +
         judge("bias", found.bias, plain.bias, exact.bias, 1) +
         judge("sinks", found.sinks, plain.sinks, exact.sinks, 1);
}

TEST_F(Bfloat16Pairs, GradientsOfAwkwardSizes) {
  for (const std::int64_t dim : {1, 5, 16, 33, 64, 128}) {
    for (const std::int64_t kv_len : {1, 2, 127, 131}) {
      const HalfInputs in({.num_heads = 2,
                           .num_kv_heads = 1,
                           .q_len = 51,
                           .kv_len = kv_len,
                           .head_dim = dim,
                           .value_dim = dim});
      for (const Mask& mask :
           {Mask(), causal_bottom_right(), sliding_window(20, 3, Alignment::top_left())}) {
        EXPECT_EQ(gradient_inaccuracy(in, {.mask = mask}), "")
            << dim << " " << kv_len << " " << mask.description();
      }
    }
  }
}

// Over many keys and rows luck evens out: no more than twice the plain error.
TEST_F(Bfloat16Pairs, GradientsOfLongSequences) {
  const HalfInputs in(Sizes{.q_len = 400, .kv_len = 1100, .head_dim = 64, .value_dim = 64});
  const auto grad_out = grad_out_for(in);
  const auto found = differentiate(in, grad_out, {.scale = 0.11F});
  const AttentionOptions options{.scale = 0.11F};
  const auto plain = reference::attention_backward(grad_out, in.query, in.key, in.value, options);
  const ExactOptions exact_options(options);
  const auto exact = reference::attention_backward(
      exactly(converted<float>(grad_out)), exactly(converted<float>(in.query)),
      exactly(converted<float>(in.key)), exactly(converted<float>(in.value)), *exact_options);
  EXPECT_EQ(Judgement{}("query", found.query, plain.query, exact.query), "");
  EXPECT_EQ(Judgement{}("key", found.key, plain.key, exact.key), "");
  EXPECT_EQ(Judgement{}("value", found.value, plain.value, exact.value), "");
}

RC_GTEST_FIXTURE_PROP(Bfloat16Pairs, GradientsOfDrawnProblems, (bool modifies)) {
  if (table_of_pairs() == nullptr) return;  // SetUp() skips no property
  AttentionCase drawn_options = drawn_case(modifies);
  drawn_options.magnitude = 1;
  const DrawnAttention drawn(drawn_options);
  const HalfInputs in(drawn.views());
  RC_ASSERT(gradient_inaccuracy(in, drawn.options()) == "");
}

TEST_F(Bfloat16Pairs, GradientsHaveTheSameBitsOnThreads) {
  const HalfInputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 500, .kv_len = 300});
  const auto grad_out = grad_out_for(in);
  for (const Mask& mask : {Mask(), strided(16, Alignment::top_left())}) {
    const auto one = differentiate(in, grad_out, {.mask = mask});
    EXPECT_TRUE(testing_support::same_bits(
        one, differentiate(in, grad_out, {.mask = mask}, {.threads = 4})));
  }
}

TEST_F(Bfloat16Pairs, WhatOutLacksIsKept) {
  if (!testing_support::multiplies_pairs()) GTEST_SKIP();
  const HalfInputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 70, .kv_len = 300});
  const auto found = attention_with_lse(in.query, in.key, in.value);
  const auto whole = attend(in, {});
  EXPECT_TRUE(same_bits(found.out, converted<BFloat16>(whole.out)));
  EXPECT_TRUE(same_bits(found.out_low, rest_of(whole.out)));
}

// An out of floats is read with 16 digits, as one that is kept in two parts.
TEST_F(Bfloat16Pairs, GradientsOfAnOutOfFloatsAreTheSame) {
  const HalfInputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 200, .kv_len = 300});
  const auto grad_out = grad_out_for(in);
  const Tensor<float> sinks = normal<float>({2}, 5);
  const AttentionOptions options{.mask = causal_bottom_right(), .sinks = sinks};
  EXPECT_TRUE(
      testing_support::same_bits(differentiate(in, grad_out, options),
                                 differentiate(in, grad_out, options, {.reads_floats = true})));
}

// 0 times what is not finite is nothing, on the way back as well.
TEST_F(Bfloat16Pairs, GradientsOfHiddenNumbers) {
  HalfInputs in({.q_len = 60, .kv_len = 200, .head_dim = 16, .value_dim = 16});
  const AttentionOptions options{.mask = sliding_window(7, 0, Alignment::top_left())};
  const auto grad_out = grad_out_for(in);
  const auto expected = differentiate(in, grad_out, options);
  // The first key that no query sees shares a pair with one that the last query does.
  for (std::int64_t k = 60; k < 200; ++k) {
    for (std::int64_t d = 0; d < 16; ++d) {
      in.key(0, 0, k, d) = BFloat16(std::numeric_limits<float>::infinity());
      in.value(0, 0, k, d) = BFloat16(std::numeric_limits<float>::quiet_NaN());
    }
  }
  // Seen by queries 31 to 38 alone.
  in.key(0, 0, 31, 3) = BFloat16(std::numeric_limits<float>::quiet_NaN());
  const auto found = differentiate(in, grad_out, options);
  for (std::int64_t q = 0; q < 60; ++q) {
    const bool sees_nan = q >= 31 && q <= 38;
    for (std::int64_t d = 0; d < 16; ++d) {
      if (sees_nan) {
        EXPECT_TRUE(std::isnan(found.query(0, 0, q, d))) << q;
      } else {
        EXPECT_EQ(found.query(0, 0, q, d), expected.query(0, 0, q, d)) << q;
      }
    }
  }
  for (std::int64_t k = 0; k < 200; ++k) {
    const bool shares_query = k >= 24 && k <= 38;
    if (shares_query) continue;
    for (std::int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(found.key(0, 0, k, d), expected.key(0, 0, k, d)) << k;
      EXPECT_EQ(found.value(0, 0, k, d), expected.value(0, 0, k, d)) << k;
    }
  }
}

}  // namespace
}  // namespace heed
