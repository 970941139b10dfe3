#include "heed/attention/diagnostics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;

using testing_support::kInfinity;
using testing_support::kNaN;
using testing_support::Refuses;

// One sequence, two heads, three queries, four keys, worked out by hand.
const Tensor<double> kWeights({1, 2, 3, 4}, {0.5, 0.5, 0,   0,    //
                                             0,   1,   0,   0,    //
                                             0,   0,   0.5, 0.5,  //
                                             0.5, 0.5, 0,   0,    //
                                             1,   0,   0,   0,    //
                                             0,   0.5, 0.5, 0});

TEST(WeightDiagnostics, ByHand) {
  const auto found = weight_diagnostics(kWeights);
  ASSERT_EQ(found.heads.size(), 2U);
  const HeadDiagnostics& head = found.heads[0];
  EXPECT_EQ(head.rows, 3);
  EXPECT_EQ(head.broken_rows, 0);
  // ln 2 / ln 4 = 1/2 in two rows of three
  EXPECT_NEAR(head.entropy, 1.0 / 3, 1e-15);
  EXPECT_NEAR(head.total, 1, 1e-15);
  EXPECT_EQ(head.padding, 0);
  EXPECT_NEAR(head.first, 0.5 / 3, 1e-15);
  // Query 0 has no previous key: (1, 0) and (2, 1) count.
  EXPECT_EQ(head.previous, 0);
  EXPECT_NEAR(head.same, (0.5 + 1 + 0.5) / 3, 1e-15);
  EXPECT_NEAR(head.next, (0.5 + 0 + 0.5) / 3, 1e-15);
  EXPECT_EQ(head.offset, 0);
  EXPECT_NEAR(head.offset_weight, 2.0 / 3, 1e-15);
  EXPECT_NEAR(head.vertical, 1.5 / 3, 1e-15);
  EXPECT_EQ(head.vertical_key, 1);
  EXPECT_NEAR(found.heads[1].previous, (1 + 0.5) / 2, 1e-15);
  EXPECT_EQ(found.heads[1].offset, -1);
  EXPECT_EQ(found.heads[1].vertical_key, 0);
  // The rows are equal; disjoint; and share 0.25 of 0.5.
  EXPECT_NEAR(found.similarity(0, 1), (1 + 0 + 0.5) / 3, 1e-15);
  EXPECT_EQ(found.similarity(1, 0), found.similarity(0, 1));
  EXPECT_EQ(found.similarity(0, 0), 1);
  EXPECT_EQ(found.mean_similarity(), found.similarity(0, 1));
}

TEST(WeightDiagnostics, CountsOnlyRowsWithAChoice) {
  const Tensor<double> weights({1, 1, 3, 3}, {1, 0, 0, 0.5, 0.5, 0, 0, 0, 1});
  const auto causal_found = weight_diagnostics(weights, causal()).heads[0];
  EXPECT_EQ(causal_found.rows, 2);
  EXPECT_NEAR(causal_found.entropy, 0.5, 1e-15);  // ln 2 / ln 2 and 0
  EXPECT_NEAR(causal_found.first, 0.25, 1e-15);
  EXPECT_NEAR(causal_found.same, 0.75, 1e-15);
  const auto full = weight_diagnostics(weights).heads[0];
  EXPECT_EQ(full.rows, 3);
  EXPECT_NEAR(full.entropy, std::log(2) / std::log(3) / 3, 1e-15);
}

TEST(WeightDiagnostics, PaddingIsWhatLengthsSay) {
  // Two sequences; the second has two real queries and three real keys.
  Tensor<double> weights({2, 1, 3, 4});
  for (double& weight : weights.elements()) weight = 0.25;
  const DiagnosticsOptions lengths{.q_lengths = {3, 2}, .kv_lengths = {4, 3}};
  const auto leaking = weight_diagnostics(weights, {}, lengths).heads[0];
  EXPECT_EQ(leaking.rows, 5);
  EXPECT_NEAR(leaking.padding, 2 * 0.25 / 5, 1e-15);
  for (std::int64_t q = 0; q < 2; ++q) {
    weights(1, 0, q, 3) = 0;
    weights(1, 0, q, 0) = 0.5;
  }
  const auto sound = weight_diagnostics(weights, {}, lengths).heads[0];
  EXPECT_EQ(sound.padding, 0);
  // The second sequence has three real keys, and its last rows belong to padding.
  const double entropy = -(0.5 * std::log(0.5) + 2 * 0.25 * std::log(0.25)) / std::log(3);
  EXPECT_NEAR(sound.entropy, (3 + 2 * entropy) / 5, 1e-15);
  EXPECT_NEAR(sound.vertical, (0.25 + 0.5) / 2, 1e-15);
}

// A row that sees a single key says nothing about its head, only about the mask.
TEST(WeightDiagnostics, FindsPaddingThatIsTheOnlyKeySeen) {
  const Tensor<double> weights({1, 1, 1, 2}, {0, 1});
  const auto found =
      weight_diagnostics(weights, Mask::rows({{1, 2}}), {.kv_lengths = {1}}).heads[0];
  EXPECT_EQ(found.rows, 0);
  EXPECT_EQ(found.padding, 1);
}

TEST(WeightDiagnostics, LeavesBrokenRowsOut) {
  Tensor<double> weights({1, 1, 2, 2}, {kNaN, 0.5, 0.25, 0.75});
  const auto found = weight_diagnostics(weights).heads[0];
  EXPECT_EQ(found.rows, 1);
  EXPECT_EQ(found.broken_rows, 1);
  EXPECT_EQ(found.same, 0.75);
  EXPECT_EQ(found.vertical, 0.75);
}

TEST(WeightDiagnostics, OfNothing) {
  EXPECT_TRUE(weight_diagnostics(Tensor<float>({1, 0, 3, 3})).heads.empty());
  for (const Shape& shape : {Shape{0, 2, 3, 3}, Shape{2, 2, 0, 3}, Shape{2, 2, 3, 0}}) {
    const auto found = weight_diagnostics(Tensor<float>(shape));
    ASSERT_EQ(found.heads.size(), 2U);
    EXPECT_EQ(found.heads[1].rows, 0);
    EXPECT_EQ(found.heads[1].offset_weight, 0);
    EXPECT_EQ(found.heads[1].vertical, 0);
    EXPECT_EQ(found.similarity(0, 1), 0);
  }
}

TEST(WeightDiagnostics, NamesWhatIsWrong) {
  const auto expect = [](const Tensor<double>& weights, const DiagnosticsOptions& lengths,
                         const std::string& text) {
    EXPECT_THAT([&] { weight_diagnostics(weights, {}, lengths); },
                ThrowsMessage<InvalidArgument>(HasSubstr("weight_diagnostics: " + text)));
  };
  expect(Tensor<double>({2, 2}), {}, "weights has shape [2, 2], expected [batch, num_heads");
  expect(Tensor<double>({1, 1, 1, 2}, {-0.5, 1}), {},
         "weights(0, 0, 0, 0) is -0.5, expected at least 0");
  expect(Tensor<double>({1, 1, 1, 2}, {2, 1}), {},
         "the weights (0, 0, 0) sum to 3, expected at most 1");
  expect(kWeights, {.kv_lengths = {5}}, "kv_lengths[0] is 5, expected 0 to 4");
  expect(kWeights, {.q_lengths = {1, 2}}, "q_lengths has 2 lengths for a batch of 1");
  EXPECT_THAT([&] { weight_diagnostics(kWeights, causal()); },
              ThrowsMessage<InvalidArgument>(HasSubstr("causal")));
}

void expect_equal(const AttentionDiagnostics& a, const AttentionDiagnostics& b) {
  ASSERT_EQ(a.heads.size(), b.heads.size());
  for (std::size_t i = 0; i < a.heads.size(); ++i) {
    EXPECT_EQ(a.heads[i].rows, b.heads[i].rows);
    EXPECT_NEAR(a.heads[i].entropy, b.heads[i].entropy, 1e-13);
    EXPECT_NEAR(a.heads[i].padding, b.heads[i].padding, 1e-13);
    EXPECT_NEAR(a.heads[i].previous, b.heads[i].previous, 1e-13);
    EXPECT_NEAR(a.heads[i].next, b.heads[i].next, 1e-13);
    EXPECT_NEAR(a.heads[i].offset_weight, b.heads[i].offset_weight, 1e-13);
    EXPECT_EQ(a.heads[i].offset, b.heads[i].offset);
    EXPECT_EQ(a.heads[i].vertical_key, b.heads[i].vertical_key);
  }
  EXPECT_LT(testing_support::max_difference(a.similarity, b.similarity), 1e-13);
}

// Diagnostics of query and key equal those of their weights.
TEST(AttentionDiagnostics, AreThoseOfTheWeights) {
  const auto query = normal<double>({2, 4, 9, 3}, 1);
  const auto key = normal<double>({2, 2, 11, 3}, 2);
  const DiagnosticsOptions lengths{.q_lengths = {9, 5}, .kv_lengths = {10, 11}};
  for (const Mask& mask : {Mask(), causal_bottom_right(), key_lengths({10, 11})}) {
    const auto weights =
        reference::attention(query, key, key, {.mask = mask}, reference::Keep::kWeights).weights;
    expect_equal(attention_diagnostics(query, key, {.mask = mask}, lengths),
                 weight_diagnostics(weights, mask, lengths));
  }
}

TEST(AttentionDiagnostics, PositionsIncludeTheOffset) {
  const Tensor<double> key({1, 1, 5, 1}, {0, 0, 9, 0, 0});
  const Tensor<double> query({1, 1, 1, 1}, {9});
  const auto found = attention_diagnostics(query, key, {.query_offset = 3}).heads[0];
  EXPECT_GT(found.previous, 0.99);
  EXPECT_EQ(found.offset, -1);
  EXPECT_LT(found.same, 0.01);
}

TEST(AttentionDiagnostics, ASinkIsMissingFromTheTotal) {
  const auto query = normal<double>({1, 2, 6, 3}, 1);
  const Tensor<double> sinks({2}, {-kInfinity, 20});
  AttentionOptions64 options;
  options.sinks = sinks;
  const auto found = attention_diagnostics(query, query, options);
  EXPECT_NEAR(found.heads[0].total, 1, 1e-14);
  EXPECT_LT(found.heads[1].total, 1e-6);
}

TEST(AttentionDiagnostics, NamesWhatIsWrong) {
  const auto query = normal<float>({2, 2, 5, 3}, 1);
  EXPECT_THAT(([&] {
                attention_diagnostics(query, query, {}, {.q_lengths = {5, 6}});
              }),
              Refuses("q_lengths[1]", "6"));
  EXPECT_THAT(
      [&] {
        attention_diagnostics(query, normal<float>({2, 2, 5, 4}, 1));
      },
      Refuses("key head_dim", "4"));
}

}  // namespace
}  // namespace heed
