#include "heed/attention/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "heed/attention/reference.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using reference::Keep;
using testing::Each;
using testing::ElementsAre;
using testing_support::elements_of;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::same_bits;

using testing_support::kInfinity;
using testing_support::kNaN;

struct ReferenceInputs {
  Tensor<double> query = normal<double>({2, 4, 9, 3}, 1);
  Tensor<double> key = normal<double>({2, 2, 11, 3}, 2);
  Tensor<double> sinks = normal<double>({4}, 3);

  Tensor<double> weights(const AttentionOptions64& options) const {
    return reference::attention(query, key, key, options, Keep::kWeights).weights;
  }
};

TEST(ReferenceWeights, AreRowsOfTheMatrix) {
  const ReferenceInputs in;
  AttentionOptions64 options{.mask = causal_bottom_right()};
  options.sinks = in.sinks;
  options.dropout.probability = 0.5F;
  const std::vector<AttentionRow> rows{{1, 3, 0}, {0, 0, 8}, {1, 3, 0}};
  const auto found = reference::attention_weights(in.query, in.key, rows, options);
  const auto matrix = in.weights(options);
  ASSERT_EQ(found.shape(), (Shape{3, 11}));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::int64_t k = 0; k < 11; ++k) {
      EXPECT_EQ(found(static_cast<std::int64_t>(i), k),
                matrix(rows[i].batch, rows[i].head, rows[i].query, k));
    }
  }
}

// Recomputes every number from the matrix by its definition.
TEST(ReferenceStatistics, AreThoseOfTheMatrix) {
  const ReferenceInputs in;
  AttentionOptions64 options{.mask = sliding_window(4, 1, Alignment::top_left())};
  options.sinks = in.sinks;
  const auto found = reference::attention_statistics(in.query, in.key, options, {.top_k = 2});
  const auto matrix = in.weights(options);
  EXPECT_TRUE(same_bits(found.lse, reference::attention(in.query, in.key, in.key, options).lse));
  Tensor<double> mass({2, 4, 11});
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 4; ++h) {
      for (std::int64_t q = 0; q < 9; ++q) {
        double entropy = 0;
        std::vector<double> sorted;
        for (std::int64_t k = 0; k < 11; ++k) {
          const double weight = matrix(b, h, q, k);
          if (weight > 0) entropy -= weight * std::log(weight);
          sorted.push_back(weight);
          mass(b, h, k) += weight;
        }
        std::sort(sorted.rbegin(), sorted.rend());
        EXPECT_NEAR(found.entropy(b, h, q), entropy, 1e-14);
        EXPECT_EQ(found.max_weight(b, h, q), sorted[0]);
        EXPECT_EQ(matrix(b, h, q, found.max_key(b, h, q)), sorted[0]);
        for (std::int64_t i = 0; i < 2; ++i) {
          EXPECT_EQ(found.top_weights(b, h, q, i), sorted[static_cast<std::size_t>(i)]);
          EXPECT_EQ(matrix(b, h, q, found.top_keys(b, h, q, i)),
                    sorted[static_cast<std::size_t>(i)]);
        }
      }
    }
  }
  EXPECT_LT(testing_support::max_difference(found.key_mass, mass), 1e-14);
}

TEST(ReferenceStatistics, OfEqualWeights) {
  const Tensor<double> query({1, 1, 3, 2});
  const Tensor<double> key({1, 1, 5, 2});
  const auto found = reference::attention_statistics(
      query, key, {.mask = Mask::rows({{0, 5}, {2, 4}, {3, 3}})}, {.top_k = 3});
  EXPECT_NEAR(found.entropy(0, 0, 0), std::log(5.0), 1e-15);
  EXPECT_NEAR(found.entropy(0, 0, 1), std::log(2.0), 1e-15);
  EXPECT_EQ(found.entropy(0, 0, 2), 0);
  EXPECT_FALSE(std::signbit(found.entropy(0, 0, 2)));
  EXPECT_THAT(found.max_weight.elements(), ElementsAre(0.2, 0.5, 0));
  EXPECT_THAT(found.max_key.elements(), ElementsAre(0, 2, -1));
  EXPECT_THAT(found.top_keys.elements(), ElementsAre(0, 1, 2, 2, 3, -1, -1, -1, -1));
  EXPECT_THAT(found.top_weights.elements(), ElementsAre(0.2, 0.2, 0.2, 0.5, 0.5, 0, 0, 0, 0));
  EXPECT_THAT(found.key_mass.elements(), ElementsAre(0.2, 0.2, 0.7, 0.7, 0.2));
}

TEST(ReferenceStatistics, NaNStaysInTheRowsAndKeysThatSeeIt) {
  ReferenceInputs in;
  in.key(0, 0, 6, 1) = kNaN;
  in.query(1, 2, 8, 0) = kInfinity;
  const AttentionOptions64 options{.mask = causal_top_left()};
  const auto found = reference::attention_statistics(in.query, in.key, options, {.top_k = 1});
  const std::vector<AttentionRow> rows{{0, 0, 5}, {0, 1, 7}};
  const auto weights = reference::attention_weights(in.query, in.key, rows, options);
  for (std::int64_t q = 0; q < 9; ++q) {
    for (std::int64_t h = 0; h < 2; ++h) {
      EXPECT_EQ(std::isnan(found.entropy(0, h, q)), q >= 6);
      EXPECT_EQ(std::isnan(found.max_weight(0, h, q)), q >= 6);
      EXPECT_EQ(std::isnan(found.top_weights(0, h, q, 0)), q >= 6);
      EXPECT_EQ(found.max_key(0, h, q) == -1, q >= 6);
      EXPECT_EQ(found.top_keys(0, h, q, 0) == -1, q >= 6);
    }
    EXPECT_EQ(std::isnan(found.entropy(1, 2, q)), q == 8);
  }
  for (std::int64_t k = 0; k < 11; ++k) {
    EXPECT_EQ(std::isnan(found.key_mass(0, 1, k)), k <= 8) << k;
    EXPECT_FALSE(std::isnan(found.key_mass(0, 2, k)));
    EXPECT_FALSE(std::isnan(weights(0, k)));
    EXPECT_EQ(std::isnan(weights(1, k)), k <= 7);
    EXPECT_TRUE(k <= 7 || weights(1, k) == 0);
  }
}

TEST(ReferenceStatistics, OfNothing) {
  const Tensor<double> query({2, 2, 0, 3});
  const Tensor<double> key({2, 2, 4, 3});
  EXPECT_THAT(elements_of(reference::attention_statistics(query, key).key_mass), Each(0));
  const auto none = reference::attention_statistics(key, query, {}, {.top_k = 2});
  EXPECT_EQ(none.key_mass.shape(), (Shape{2, 2, 0}));
  EXPECT_THAT(none.entropy.elements(), Each(0));
  EXPECT_THAT(none.max_key.elements(), Each(-1));
  EXPECT_THAT(none.top_keys.elements(), Each(-1));
  EXPECT_EQ(none.top_keys.num_elements(), 2 * 2 * 4 * 2);
  EXPECT_THAT(none.lse.elements(), Each(-kInfinity));
  EXPECT_EQ(reference::attention_weights(query, key, {}).shape(), (Shape{0, 4}));
}

TEST(ReferenceStatistics, NamesWhatIsWrong) {
  const ReferenceInputs in;
  const auto wide = normal<double>({2, 2, 11, 5}, 4);
  const AttentionRow row{0, 4, 0};
  EXPECT_THAT([&] { reference::attention_statistics(in.query, wide); },
              Refuses("key head_dim", "5"));
  EXPECT_THAT(([&] { reference::attention_statistics(in.query, in.key, {}, {.top_k = -2}); }),
              Refuses("top_k", "-2"));
  EXPECT_THAT(([&] {
                reference::attention_weights(in.query, in.key, {&row, 1});
              }),
              Refuses("rows[0].head", "4"));
}

}  // namespace
}  // namespace heed
