// Products of bfloat16 pairs, where the processor has them, compared with plain loops that round
// the same numbers in the same places.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "attention/engine/half_rules.h"
#include "attention/request/call.h"
#include "heed/attention/kv_cache.h"
#include "heed/attention/position.h"
#include "heed/core/convert.h"
#include "heed/core/parallel.h"
#include "support/drawn_attention.h"
#include "support/exact.h"
#include "support/fused.h"
#include "support/half_gradients.h"
#include "support/kernel_tables.h"
#include "support/tensors.h"

namespace heed { namespace {

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

// Returns the table that multiplies pairs, or null.
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

// Weights are rounded by up to 2⁻⁹ of themselves, which determines the error of the result.
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
  // Learned vectors are added to values in float.
  std::erase_if(drawn.options,
                [](const auto* option) { return option->name == "relative_vectors"; });
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
// A bfloat16 cache, which stores keys as columns, gives the bits of tensors: in prefill, in chunks
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

std::string gradient_inaccuracy(const HalfInputs& in, const AttentionOptions& options) {
  return testing_support::gradient_inaccuracy(*table_of_pairs(), in, options);
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

TEST_F(Bfloat16Pairs, GradientsOfLongSequences) {
  testing_support::expect_accurate_gradients_of_long_sequences(*table_of_pairs());
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
  testing_support::expect_gradients_have_the_same_bits_on_threads(*table_of_pairs(), 16);
}

TEST_F(Bfloat16Pairs, GradientsOfAnOutOfFloatsAreTheSame) {
  testing_support::expect_gradients_of_an_out_of_floats_are_the_same(*table_of_pairs(), 16);
}

TEST_F(Bfloat16Pairs, GradientsOfRowsThatAreNotFinite) {
  testing_support::expect_gradients_of_rows_that_are_not_finite(*table_of_pairs(), 16);
}

TEST_F(Bfloat16Pairs, GradientsOfHiddenNumbers) {
  testing_support::expect_gradients_of_hidden_numbers_are_nothing(*table_of_pairs(), 16);
}

TEST_F(Bfloat16Pairs, WhatOutLacksIsKept) {
  if (!testing_support::multiplies_pairs()) GTEST_SKIP();
  const HalfInputs in({.num_heads = 2, .num_kv_heads = 1, .q_len = 70, .kv_len = 300});
  const auto found = attention_with_lse(in.query, in.key, in.value);
  const auto whole = attend(in, {});
  EXPECT_TRUE(same_bits(found.out, converted<BFloat16>(whole.out)));
  EXPECT_TRUE(same_bits(found.out_low, testing_support::rest_of(whole.out)));
}

}  // namespace
}  // namespace heed
