#include "heed/inspect/model_heads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "support/tiny_model.h"

namespace heed::inspect { namespace {

using models::Family;
using models::Model;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Message;
using testing_support::Refuses;
using testing_support::TinyModel;

constexpr RepeatedTokens kFew{.length = 7, .repeats = 3, .sequences = 2, .seed = 4};
const char* const kWords = "w3 w1 w4 w1 w5 w9 w2 w6 w5 w3 w5 w8";

class ModelHeads : public testing::Test {
 protected:
  TinyModel decoder_files_{Family::kLlama};
  TinyModel encoder_files_{Family::kBert};
  Model decoder_ = models::load(decoder_files_.folder());
  Model encoder_ = models::load(encoder_files_.folder());
};

TEST_F(ModelHeads, TextsHaveTheTokensThatModelsExpect) {
  const ModelText text = read_text(encoder_, "w3 w1 nobody");
  EXPECT_THAT(text.tokens.ids, ElementsAre(1, 7, 5, 0, 2));
  EXPECT_THAT(text.tokens.is_special, ElementsAre(true, false, false, false, true));
  EXPECT_THAT(text.labels, ElementsAre("[CLS]", "w3", "w1", "[UNK]", "[SEP]"));
  const ModelText pair = read_pair(encoder_, "w3", "w1");
  EXPECT_THAT(pair.tokens.ids, ElementsAre(1, 7, 2, 5, 2));
  EXPECT_THAT(pair.type_ids, ElementsAre(0, 0, 0, 1, 1));
}

TEST_F(ModelHeads, LongTextsKeepTheirEnd) {
  EXPECT_THAT(read_text(encoder_, kWords, 4).tokens.ids, ElementsAre(1, 7, 5, 2));
  EXPECT_EQ(read_text(encoder_, kWords, 4).labels.size(), 4U);
  std::string longest = kWords;
  for (int i = 0; i < 5; ++i) longest += std::string(" ") + kWords;
  EXPECT_EQ(read_text(encoder_, longest).tokens.length(), 64);  // the model's positions
  EXPECT_THAT([&] { read_text(encoder_, kWords, 1); }, Refuses("max_tokens", "1"));
}

TEST_F(ModelHeads, RepeatedTokensAreWordsThatRepeat) {
  const std::vector<ModelText> texts = repeated_tokens(encoder_, kFew);
  ASSERT_EQ(texts.size(), 2U);
  for (const ModelText& text : texts) {
    const auto& ids = text.tokens.ids;
    ASSERT_EQ(ids.size(), 23U);
    EXPECT_EQ(ids.front(), 1);
    EXPECT_EQ(ids.back(), 2);
    EXPECT_EQ(text.first_repeated, 8);
    EXPECT_EQ(std::set<std::int64_t>(ids.begin() + 1, ids.begin() + 8).size(), 7U);
    for (std::size_t i = 8; i < 22; ++i) EXPECT_EQ(ids[i], ids[i - 7]);
    EXPECT_TRUE(
        std::all_of(ids.begin() + 1, ids.end() - 1, [](std::int64_t id) { return id > 3; }));
  }
  EXPECT_NE(texts[0].tokens.ids, texts[1].tokens.ids);
  EXPECT_EQ(texts[0].tokens.ids, repeated_tokens(encoder_, kFew)[0].tokens.ids);
  EXPECT_EQ(texts[0].labels[3], "w" + std::to_string(texts[0].tokens.ids[3] - 4));
}

TEST_F(ModelHeads, RepeatedTokensAreKnownToTheModelToo) {
  auto tokenizer = nlohmann::json::parse(decoder_files_.read("tokenizer.json"));
  for (int id = 40; id < 400; ++id) {
    tokenizer["model"]["vocab"]["w" + std::to_string(id - 4)] = id;
  }
  decoder_files_.write("tokenizer.json", tokenizer.dump());
  const Model model = models::load(decoder_files_.folder());
  for (const ModelText& text : repeated_tokens(model, kFew)) {
    EXPECT_THAT(text.tokens.ids, testing::Each(testing::Lt(40)));
  }
}

TEST_F(ModelHeads, RepeatedTokensSayWhatDoesNotFit) {
  const auto expect_error = [&](RepeatedTokens numbers, const Message& text) {
    EXPECT_THAT([&] { repeated_tokens(encoder_, numbers); },
                ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("repeated_tokens: "), text)));
  };
  expect_error({.length = 0}, {"length", "0"});
  expect_error({.repeats = 1}, {"repeats", "1"});
  expect_error({.sequences = 0}, {"sequences", "0"});
  expect_error({.length = 37}, {"length", "37"});
  expect_error({}, "4 times 25 tokens are more than the 62 that the model's positions have room");
  expect_error({.length = 2, .repeats = std::int64_t{1} << 62}, "times 2 tokens are more than");
}

TEST_F(ModelHeads, AreThoseOfEachAttentionAlone) {
  const ModelText text = read_text(decoder_, kWords);
  std::int64_t reported = 0;
  std::int64_t total = 0;
  HeadScoresOptions options{.max_offset = 4, .repeated = kFew};
  options.progress = [&](std::int64_t done, std::int64_t of) {
    EXPECT_EQ(done, ++reported);
    total = of;
  };
  const HeadScores scores = score_heads(decoder_, {text}, options);
  EXPECT_EQ(reported, 3 * 2);  // texts × layers
  EXPECT_EQ(total, 3 * 2);
  ASSERT_EQ(scores.text.layers.size(), 2U);
  models::ForwardOptions forward;
  forward.observer = [&](const models::AttentionCall& call) {
    HeadScorer scorer(text_patterns(), 4, 4);
    scorer.add(call.query, call.key, call.options, text.tokens);
    const auto expected = scorer.measures();
    const auto& found = scores.text.layers[static_cast<std::size_t>(call.layer)];
    ASSERT_EQ(found.size(), 4U);
    for (std::size_t head = 0; head < 4; ++head) {
      EXPECT_GT(expected[head].patterns[0].score, 0);
      EXPECT_EQ(found[head].patterns[0].score, expected[head].patterns[0].score);
      EXPECT_EQ(found[head].at_offset.score, expected[head].at_offset.score);
      EXPECT_EQ(found[head].confidence, expected[head].confidence);
    }
  };
  decoder_.forward(models::Inputs::of(text.tokens.ids), forward);
}

TEST_F(ModelHeads, OnlyCausalModelsAreScoredForInduction) {
  const auto names = [](const HeadScores& scores) {
    std::vector<std::string> result;
    for (const TokenPattern& pattern : scores.repeated.patterns) result.push_back(pattern.name);
    return result;
  };
  const HeadScoresOptions options{.repeated = kFew};
  EXPECT_THAT(names(score_heads(decoder_, {read_text(decoder_, kWords)}, options)),
              ElementsAre("duplicate token", "induction"));
  EXPECT_THAT(names(score_heads(encoder_, {read_text(encoder_, kWords)}, options)),
              ElementsAre("duplicate token"));
  EXPECT_THAT([&] { score_heads(decoder_, {}, options); },
              ThrowsMessage<InvalidArgument>(HasSubstr("score_heads: there is no text")));
}

// Returns the scores of one head for one pattern of texts and one of repeated tokens.
HeadScores scores_of(PatternScore text, PatternScore repeated, HeadMeasures measures = {}) {
  HeadScores scores;
  measures.patterns = {text, {.score = 0.99, .rows = 100}};
  scores.text = {{}, {previous_token(), duplicate_token()}, {{measures}}};
  scores.repeated = {{}, {induction()}, {{{.patterns = {repeated}}}}};
  return scores;
}

std::vector<std::string> names_of(const HeadScores& scores) {
  std::vector<std::string> names;
  for (const HeadRole& role : head_roles(scores)) names.push_back(role.name);
  return names;
}

TEST(HeadRoles, AreThosePatternsWhoseThresholdIsExceeded) {
  const HeadMeasures plain{.confidence = 0.5, .rows = 100};
  EXPECT_THAT(names_of(scores_of({.score = 0.51, .rows = 9}, {.score = 0.41, .rows = 9}, plain)),
              ElementsAre("previous token", "induction"));
  EXPECT_THAT(names_of(scores_of({.score = 0.5, .rows = 9}, {.score = 0.4, .rows = 9}, plain)),
              ElementsAre());
  EXPECT_THAT(names_of(scores_of({.score = 1, .rows = 8}, {.score = 1, .rows = 8}, plain)),
              ElementsAre());
}

TEST(HeadRoles, PositionalHeadsOffsetsAndBroadHeads) {
  const HeadMeasures positional{.peak_offset = -1, .peak_share = 0.9, .confidence = 1, .rows = 100};
  EXPECT_THAT(names_of(scores_of({}, {}, positional)), ElementsAre("positional"));
  HeadMeasures less = positional;
  less.peak_share = 0.89;
  EXPECT_THAT(names_of(scores_of({}, {}, less)), ElementsAre());
  HeadMeasures far{
      .offset = -3, .at_offset = {.score = 0.6, .rows = 90}, .confidence = 1, .rows = 100};
  const auto roles = head_roles(scores_of({}, {}, far));
  ASSERT_EQ(roles.size(), 1U);
  EXPECT_EQ(roles[0].name, "constant offset");
  EXPECT_EQ(roles[0].looks_at, "what stands at distance -3");
  EXPECT_EQ(roles[0].score, 0.6);
  far.offset = -1;  // which is "previous token"
  EXPECT_THAT(names_of(scores_of({}, {}, far)), ElementsAre());
  EXPECT_THAT(names_of(scores_of({}, {}, {.confidence = 0.1, .rows = 9})), ElementsAre("broad"));
}

TEST(HeadRoles, TheHighestScoresComeFirst) {
  HeadScores scores = scores_of({.score = 0.6, .rows = 50}, {}, {.confidence = 1, .rows = 100});
  scores.text.layers.push_back(scores.text.layers[0]);
  scores.text.layers[1][0].patterns[0].score = 0.7;
  scores.repeated.layers.push_back(scores.repeated.layers[0]);
  const auto roles = head_roles(scores);
  ASSERT_EQ(roles.size(), 2U);
  EXPECT_EQ(roles[0].head, (models::HeadIndex{1, 0}));
  EXPECT_EQ(roles[1].head, (models::HeadIndex{0, 0}));
  EXPECT_EQ(roles[1].threshold, 0.5);
}

}  // namespace
}  // namespace heed::inspect
