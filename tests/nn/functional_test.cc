#include "heed/nn/functional.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>

#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing_support::elements_of;
using testing_support::expect_refused;
using testing_support::max_difference;
using testing_support::normal;

TEST(Linear, MultipliesByTheTransposedWeight) {
  const Tensor<float> x({1, 2, 2}, {1, 2, 3, 4});
  const LinearParameters<float> layer{Tensor<float>({3, 2}, {1, 0, 0, 1, 1, 1}),
                                      Tensor<float>({3}, {10, 20, 30})};
  const auto y = linear(x, layer);
  EXPECT_EQ(y.shape(), (Shape{1, 2, 3}));
  EXPECT_THAT(y.elements(), ElementsAre(11, 22, 33, 13, 24, 37));
  const LinearParameters<float> without_bias{layer.weight, {}};
  EXPECT_THAT(elements_of(linear(x, without_bias)), ElementsAre(1, 2, 3, 3, 4, 7));
}

TEST(Linear, ReadsStridedInputAndEmptySizes) {
  const Tensor<double> x = normal<double>({3, 4}, 1);
  const LinearParameters<double> layer{normal<double>({2, 3}, 2), {}};
  const auto transposed = x.view().permute({1, 0});
  EXPECT_EQ(max_difference(linear(transposed, layer), linear(to_tensor(transposed), layer)), 0);
  EXPECT_EQ(linear(Tensor<double>(Shape{0, 3}), layer).shape(), (Shape{0, 2}));
  const LinearParameters<double> no_inputs{Tensor<double>(Shape{2, 0}),
                                           Tensor<double>({2}, {5, 6})};
  EXPECT_THAT(elements_of(linear(Tensor<double>(Shape{1, 0}), no_inputs)), ElementsAre(5, 6));
}

TEST(Linear, RefusesShapesThatDoNotFit) {
  const LinearParameters<float> layer{Tensor<float>(Shape{2, 3}), {}};
  expect_refused([&] { linear(Tensor<float>(Shape{4, 2}), layer); }, {"x", "[4, 2]"});
  const LinearParameters<float> bad_bias{Tensor<float>(Shape{2, 3}), Tensor<float>(Shape{3})};
  expect_refused([&] { linear(Tensor<float>(Shape{4, 3}), bad_bias); }, {"bias", "[3]"});
}

TEST(Embedding, PicksRows) {
  const Tensor<float> table({3, 2}, {0, 1, 10, 11, 20, 21});
  const Tensor<std::int64_t> ids({1, 2}, {2, 0});
  const auto rows = embedding(ids, table);
  EXPECT_EQ(rows.shape(), (Shape{1, 2, 2}));
  EXPECT_THAT(rows.elements(), ElementsAre(20, 21, 0, 1));
  const Tensor<std::int64_t> outside({1}, {3});
  expect_refused([&] { embedding(outside, table); },
                 "embedding: token id 3 is not in the table of 3");
}

TEST(Heads, SplitAndMergeAreInverse) {
  const Tensor<float> x = normal<float>({2, 3, 8}, 1);
  const auto heads = split_heads(x, 4);
  EXPECT_EQ(heads.shape(), (Shape{2, 4, 3, 2}));
  EXPECT_EQ(heads(1, 2, 0, 1), x(1, 0, 5));
  EXPECT_EQ(max_difference(merge_heads(heads), x), 0);
  expect_refused([&] { split_heads(x, 3); },
                 "split_heads: width 8 is not a multiple of num_heads, 3");
  expect_refused([&] { split_heads(x, 0); }, "num_heads, 0");
}

TEST(MultiHeadAttention, IsHeadsOfAttentionSideBySide) {
  TorchGenerator generator(0);
  const auto parameters = attention_init(generator, 6, 6);
  EXPECT_EQ(parameters.num_parameters(), 4 * (36 + 6));
  const Tensor<float> x = normal<float>({2, 4, 6}, 1);
  const Tensor<float> context = normal<float>({2, 5, 6}, 2);
  const auto attended = multi_head_attention(x, context, parameters, 3);
  EXPECT_EQ(attended.out.shape(), (Shape{2, 4, 6}));
  EXPECT_EQ(attended.weights.shape(), (Shape{2, 3, 4, 5}));

  const auto q = linear(x, parameters.query);
  const auto k = linear(context, parameters.key);
  const auto v = linear(context, parameters.value);
  Tensor<float> concatenated(Shape{2, 4, 6});
  for (std::int64_t head = 0; head < 3; ++head) {
    const auto slice = [head](FloatView view) {
      return to_tensor(view.slice(2, 2 * head, 2 * head + 2));
    };
    const auto out = attention(slice(q).reshaped({2, 1, 4, 2}), slice(k).reshaped({2, 1, 5, 2}),
                               slice(v).reshaped({2, 1, 5, 2}));
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t t = 0; t < 4; ++t)
        for (std::int64_t d = 0; d < 2; ++d) concatenated(b, t, 2 * head + d) = out(b, 0, t, d);
  }
  EXPECT_LT(max_difference(attended.out, linear(concatenated, parameters.out)), 1e-6);
}

TEST(MultiHeadAttention, FusedProjectionIsThreeInOne) {
  TorchGenerator generator(0);
  const auto fused = linear_init(generator, 4, 12, true);
  const auto [query, key, value] = split_qkv(fused);
  const Tensor<float> x = normal<float>({3, 4}, 5);
  const auto all = linear(x, fused);
  EXPECT_LT(max_difference<float>(all.view().slice(1, 4, 8), linear(x, key)), 1e-6);
  EXPECT_LT(max_difference<float>(all.view().slice(1, 8, 12), linear(x, value)), 1e-6);
  EXPECT_EQ(query.bias(0), fused.bias(0));
  expect_refused([&] { split_qkv(linear_init(generator, 4, 8)); },
                 "[8, 4], expected [3 · inner_dim, embed_dim]");
}

}  // namespace
}  // namespace heed
