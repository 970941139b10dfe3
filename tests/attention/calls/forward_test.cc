#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/attention.h"
#include "heed/attention/position.h"
#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::converted;
using testing_support::max_difference;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

TEST(AttentionTarget, IsOneOfThoseThatAreThere) {
  EXPECT_EQ(attention_targets().back(), "reference");
  EXPECT_THAT(attention_targets(), Contains(attention_target()));
}

TEST(AttentionWithLse, AgreesWithTheReference) {
  const auto query = normal<float>({2, 4, 30, 16}, 1);
  const auto key = normal<float>({2, 2, 40, 16}, 2);
  const auto value = normal<float>({2, 2, 40, 8}, 3);
  const AttentionOptions options{.mask = causal_bottom_right(), .softcap = 3};
  const auto result = attention_with_lse(query, key, value, options);
  const auto expected = reference::attention(query, key, value, options);
  EXPECT_LT(max_difference(result.out, expected.out), 2e-6);
  EXPECT_LT(max_difference(result.lse, expected.lse), 2e-6);
  EXPECT_TRUE(same_bits(result.out, attention(query, key, value, options)));
}

TEST(AttentionWithLse, AgreesWithTheReferenceInDouble) {
  const auto x = normal<double>({1, 2, 9, 4}, 1);
  const auto result = attention_with_lse(x, x, x, {.mask = causal()});
  const auto expected = reference::attention(x, x, x, {.mask = causal()});
  EXPECT_LT(max_difference(result.out, expected.out), 2e-15);
  EXPECT_LT(max_difference(result.lse, expected.lse), 2e-15);
  EXPECT_TRUE(same_bits(result.out, attention(x, x, x, {.mask = causal()})));
}

// Half-precision keys and values as in a cache, with float queries.
template <class Half>
void expect_half_keys_are_floats() {
  const auto query = normal<float>({2, 4, 30, 16}, 1);
  const auto key = converted<Half>(normal<float>({2, 2, 200, 16}, 2));
  const auto value = converted<Half>(normal<float>({2, 2, 200, 8}, 3));
  const AttentionOptions options{.mask = causal_bottom_right(), .softcap = 3};
  const auto found = attention_with_lse(query, key, value, options);
  const auto expected =
      attention_with_lse(query, converted<float>(key), converted<float>(value), options);
  EXPECT_TRUE(same_bits(found.out, expected.out));
  EXPECT_TRUE(same_bits(found.lse, expected.lse));
  EXPECT_TRUE(same_bits(found.out, attention(query, key, value, options)));
}

TEST(AttentionWithLse, ReadsKeysInHalfPrecisionForQueriesInFloat) {
  expect_half_keys_are_floats<Float16>();
  expect_half_keys_are_floats<BFloat16>();
}

TEST(Attention, KeyHeadsMayServeNoHead) {
  const Tensor<float> query({2, 0, 3, 4});
  const auto key = normal<float>({2, 2, 5, 4}, 1);
  EXPECT_EQ(attention(query, key, key).shape(), (Shape{2, 0, 3, 4}));
}

template <class Real>
void expect_alibi_to_measure_from_the_last_key() {
  const auto x = normal<Real>({2, 4, 9, 8}, 1);
  const Tensor<Real> slopes = alibi_slopes<Real>(4);
  BasicAttentionOptions<Real> options{.mask = causal(), .alibi_slopes = slopes};
  const auto all = attention(x, x, x, options);
  const Tensor<Real> expected = to_tensor(all.view().slice(2, 7, 9));
  const TensorView<const Real> last = x.view().slice(2, 7, 9);
  options.mask = causal_bottom_right() & sliding_window(20, 0, Alignment::bottom_right());
  EXPECT_TRUE(same_bits(attention(last, x, x, options), expected));
  options.query_offset = 7;
  EXPECT_TRUE(same_bits(attention(last, x, x, options), expected));
  options.query_offset = 0;
  options.mask = causal_bottom_right() & causal_top_left();
  const auto first = attention(last, x, x, options);
  options.mask = causal_top_left();
  EXPECT_TRUE(same_bits(first, attention(last, x, x, options)));
  options.mask = causal_bottom_right() & causal();
  EXPECT_THAT(([&] { attention(last, x, x, options); }),
              ThrowsMessage<InvalidArgument>(HasSubstr("where lengths differ")));
}

TEST(Attention, AlibiMeasuresFromWhereBottomRightPutsTheQueries) {
  expect_alibi_to_measure_from_the_last_key<float>();
  expect_alibi_to_measure_from_the_last_key<double>();
}

TEST(Attention, ChecksBeforeItComputes) {
  const auto x = normal<float>({1, 2, 9, 4}, 1);
  const auto y = normal<float>({1, 2, 9, 5}, 1);
  EXPECT_THAT(([&] { attention(x, y, x); }), Refuses("key head_dim", "5"));
}

}  // namespace
}  // namespace heed
