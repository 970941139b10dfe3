// Attention by products of features of variables.
#include <gtest/gtest.h>

#include <vector>

#include "heed/attention/linear_attention.h"
#include "heed/nn/ops.h"
#include "support/gradcheck.h"

namespace heed::nn { namespace {

using testing_support::gradient_error;
using testing_support::kGradientTolerance;
using testing_support::normal_variable;
using testing_support::same_bits;
using Variable64 = Variable<double>;

const std::vector<FeatureMapOptions>& all_options() {
  static const std::vector<FeatureMapOptions> options{
      {},
      {.causal = true},
      {.causal = true, .normalized = false},
      {.feature_map = FeatureMap::kRelu, .causal = true}};
  return options;
}

// 4 query heads of 3 dimensions share 2 key heads.
TEST(FeatureMapAttentionOfVariables, OfHeadsApart) {
  const Variable64 query = normal_variable({2, 4, 5, 3}, 1);
  const Variable64 key = normal_variable({2, 2, 5, 3}, 2);
  const Variable64 value = normal_variable({2, 2, 5, 2}, 3);
  for (const FeatureMapOptions& options : all_options()) {
    const auto attend = [&] {
      return feature_map_attention<double>({query}, {key}, {value}, options);
    };
    EXPECT_TRUE(same_bits(attend().value(), heed::feature_map_attention(query.value(), key.value(),
                                                                        value.value(), options)));
    EXPECT_LE(gradient_error({query, key, value}, attend), kGradientTolerance);
  }
}

// One variable holds query, key and value side by side; the result has the query heads as columns.
TEST(FeatureMapAttentionOfVariables, OfColumns) {
  const Variable64 all = normal_variable({2, 5, 12 + 6 + 4}, 1);
  const Heads<double> query{all, {.num_heads = 4, .head_dim = 3}};
  const Heads<double> key{all, {.num_heads = 2, .head_dim = 3, .first = 12}};
  const Heads<double> value{all, {.num_heads = 2, .head_dim = 2, .first = 18}};
  for (const FeatureMapOptions& options : all_options()) {
    const auto attend = [&] { return feature_map_attention(query, key, value, options); };
    const auto heads = heed::feature_map_attention(query.view(), key.view(), value.view(), options);
    const Variable64 out = attend();
    ASSERT_EQ(out.shape(), (Shape{2, 5, 8}));
    for (std::int64_t i = 0; i < out.num_elements(); ++i) {
      const std::int64_t column = i % 8;
      EXPECT_EQ(out.value().elements()[static_cast<std::size_t>(i)],
                heads(i / 40, column / 2, i / 8 % 5, column % 2));
    }
    EXPECT_LE(gradient_error({all}, attend), kGradientTolerance);
  }
}

}  // namespace
}  // namespace heed::nn
