#include "models/experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/tensors.h"

namespace heed::models { namespace {

using testing::ElementsAre;
using testing::FloatEq;
using testing::IsEmpty;

Tensor<float> scores_of(const std::vector<std::vector<float>>& rows) {
  Tensor<float> scores(
      {static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(rows.front().size())});
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(), scores.data() + i * rows[i].size());
  }
  return scores;
}

TEST(ChooseExperts, WeighsThoseWithTheLargestScores) {
  const auto chosen = choose_experts(scores_of({{0, std::log(3.0F), std::log(4.0F)}, {5, 0, 5}}),
                                     {.count = 3, .per_token = 2});
  EXPECT_THAT(chosen[0].tokens, ElementsAre(1));
  EXPECT_THAT(chosen[1].tokens, ElementsAre(0));
  EXPECT_THAT(chosen[2].tokens, ElementsAre(0, 1));
  EXPECT_THAT(chosen[1].weights, ElementsAre(FloatEq(3.0F / 8)));
  EXPECT_FLOAT_EQ(chosen[2].weights[0], 4.0F / 8);
  EXPECT_FLOAT_EQ(chosen[2].weights[1], chosen[0].weights[0]);
}

TEST(ChooseExperts, DividesByTheSumOfTheChosenOnes) {
  const auto chosen = choose_experts(scores_of({{0, std::log(3.0F), std::log(4.0F)}}),
                                     {.count = 3, .per_token = 2, .has_weights_of_sum_1 = true});
  EXPECT_THAT(chosen[0].tokens, IsEmpty());
  EXPECT_THAT(chosen[1].weights, ElementsAre(FloatEq(3.0F / 7)));
  EXPECT_THAT(chosen[2].weights, ElementsAre(FloatEq(4.0F / 7)));
}

TEST(ChooseExperts, TakesTheFirstOfEqualOnes) {
  const auto chosen = choose_experts(scores_of({{1, 1, 1, 1}}), {.count = 4, .per_token = 2});
  EXPECT_THAT(chosen[0].weights, ElementsAre(0.25F));
  EXPECT_THAT(chosen[1].weights, ElementsAre(0.25F));
  EXPECT_THAT(chosen[2].tokens, IsEmpty());
}

TEST(ChooseExperts, PassesOnWhatIsNoNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto chosen = choose_experts(scores_of({{nan, 1, nan}}), {.count = 3, .per_token = 1});
  EXPECT_THAT(chosen[1].tokens, ElementsAre(0));
  EXPECT_TRUE(std::isnan(chosen[1].weights[0]));
}

}}  // namespace heed::models
