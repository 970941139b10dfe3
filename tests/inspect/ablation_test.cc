#include "heed/inspect/ablation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "support/tiny_model.h"

namespace heed::inspect { namespace {

using models::Family;
using models::HeadIndex;
using models::Model;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;
using testing_support::TinyModel;

HeadScores few_scores(const Model& model) {
  return score_heads(model, {read_text(model, "w3 w1 w4 w1 w5 w9"), read_text(model, "w2 w6 w5")},
                     {.repeated = {.length = 7, .repeats = 3, .sequences = 2}});
}

// Returns the loss over the tokens of all texts but the first, by the model's own function.
double loss_of_texts(const Model& model, const HeadScores& scores,
                     const std::vector<HeadIndex>& heads) {
  models::ForwardOptions options;
  options.switched_off = heads;
  double sum = 0;
  double count = 0;
  for (const ModelText& text : scores.text.texts) {
    const auto tokens = static_cast<double>(text.tokens.length() - 1);
    sum += tokens * models::mean_loss(model, text.tokens.ids, options);
    count += tokens;
  }
  return sum / count;
}

TEST(AblateHeads, LossesAreThoseOfTheModel) {
  const TinyModel files(Family::kLlama);
  const Model model = models::load(files.folder());
  const HeadScores scores = few_scores(model);
  std::int64_t reported = 0;
  AblationOptions options{.draws = 3};
  options.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(done, ++reported);
    EXPECT_EQ(total, 5);
  };
  const Ablation ablation = ablate_heads(model, scores, {{1, 3}, {0, 1}}, options);
  EXPECT_EQ(reported, 5);
  EXPECT_TRUE(ablation.has_losses);
  EXPECT_NEAR(ablation.all.cosine, 1, 1e-6);
  EXPECT_NEAR(ablation.all.text_loss, loss_of_texts(model, scores, {}), 1e-5);
  EXPECT_EQ(ablation.chosen.heads, (std::vector<HeadIndex>{{0, 1}, {1, 3}}));
  EXPECT_NEAR(ablation.chosen.text_loss, loss_of_texts(model, scores, {{0, 1}, {1, 3}}), 1e-5);
  EXPECT_NE(ablation.chosen.text_loss, ablation.all.text_loss);
  EXPECT_NE(ablation.chosen.repeated_loss, ablation.all.repeated_loss);
  EXPECT_LT(ablation.chosen.cosine, 1);
  ASSERT_EQ(ablation.random.size(), 3U);
  for (const AblationOutcome& outcome : ablation.random) {
    ASSERT_EQ(outcome.heads.size(), 2U);
    EXPECT_LT(outcome.heads[0], outcome.heads[1]);
    for (const HeadIndex& head : ablation.chosen.heads) {
      EXPECT_EQ(std::count(outcome.heads.begin(), outcome.heads.end(), head), 0);
    }
    EXPECT_NEAR(outcome.text_loss, loss_of_texts(model, scores, outcome.heads), 1e-5);
  }
}

TEST(AblateHeads, AnEncoderHasVectorsAlone) {
  const TinyModel files(Family::kBert);
  const Model model = models::load(files.folder());
  const Ablation ablation = ablate_heads(model, few_scores(model), {{0, 2}});
  EXPECT_FALSE(ablation.has_losses);
  EXPECT_EQ(ablation.chosen.text_loss, 0);
  EXPECT_NEAR(ablation.all.cosine, 1, 1e-6);
  EXPECT_LT(ablation.chosen.cosine, 0.9999);
  EXPECT_GT(ablation.chosen.cosine, -1);
  EXPECT_EQ(ablation.random.size(), 5U);
}

TEST(AblateHeads, DrawsAreThoseOfTheSeed) {
  const TinyModel files(Family::kBert);
  const Model model = models::load(files.folder());
  const HeadScores scores = few_scores(model);
  const auto drawn = [&](std::uint64_t seed) {
    std::vector<std::vector<HeadIndex>> heads;
    for (const auto& outcome :
         ablate_heads(model, scores, {{0, 2}}, {.draws = 4, .seed = seed}).random) {
      heads.push_back(outcome.heads);
    }
    return heads;
  };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
}

TEST(AblateHeads, SaysWhichHeadsThereAre) {
  const TinyModel files(Family::kBert);
  const Model model = models::load(files.folder());
  const HeadScores scores = few_scores(model);
  const auto expect_error = [&](std::vector<HeadIndex> heads, const std::string& text) {
    EXPECT_THAT([&] { ablate_heads(model, scores, heads); },
                ThrowsMessage<InvalidArgument>(HasSubstr("ablate_heads: " + text)));
  };
  expect_error({}, "no head is named");
  expect_error({{2, 0}}, "there is no head 2.0, expected layers 0 to 1 and heads 0 to 2");
  expect_error({{0, 3}}, "there is no head 0.3");
  expect_error({{0, -1}}, "there is no head 0.-1");
  expect_error({{0, 1}, {1, 1}, {0, 1}}, "head 0.1 is named twice");
  expect_error({{0, 0}, {0, 1}, {0, 2}, {1, 0}}, "4 heads leave 2 others");
  EXPECT_THAT(
      [&] {
        ablate_heads(model, scores, {{0, 0}}, {.draws = -1});
      },
      Refuses("draws", "-1"));
}

TEST(Ablation, SpreadIsMeanAndDeviationOfASample) {
  Ablation ablation;
  EXPECT_EQ(ablation.spread(&AblationOutcome::cosine).mean, 0);
  for (const double loss : {1.0, 2.0, 6.0}) {
    AblationOutcome& outcome = ablation.random.emplace_back();
    outcome.text_loss = loss;
  }
  EXPECT_NEAR(ablation.spread(&AblationOutcome::text_loss).mean, 3, 1e-12);
  EXPECT_NEAR(ablation.spread(&AblationOutcome::text_loss).deviation, std::sqrt(7.0), 1e-12);
  ablation.random.resize(1);
  EXPECT_EQ(ablation.spread(&AblationOutcome::text_loss).deviation, 0);
}

}  // namespace
}  // namespace heed::inspect
