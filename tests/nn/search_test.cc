#include "heed/nn/search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "heed/core/random.h"
#include "heed/nn/special_tokens.h"
#include "support/refusal.h"

namespace heed::nn { namespace {

using testing::Each;
using testing_support::Refuses;
using Ids = std::vector<std::int64_t>;

RecurrentSeq2Seq<double> drawn_model() {
  return RecurrentSeq2Seq<double>(
      {.src_vocab_size = 7, .tgt_vocab_size = 6, .d_model = 8, .num_layers = 2});
}

// Returns the log probability of writing `tokens`, with or without the end token.
double log_probability(Seq2Seq<double>& model, const Tensor<std::int64_t>& src, const Ids& tokens,
                       bool ends) {
  Ids in{kBosId};
  in.insert(in.end(), tokens.begin(), tokens.end());
  const auto length = static_cast<std::int64_t>(in.size());
  const NoGrad no_grad;
  model.eval();
  const auto logs = log_softmax(model.forward(src, Tensor<std::int64_t>({1, length}, in)).logits);
  double sum = ends ? logs.value()(0, length - 1, kEosId) : 0;
  for (std::int64_t t = 0; t + 1 < length; ++t) {
    sum += logs.value()(0, t, tokens[static_cast<std::size_t>(t)]);
  }
  return sum;
}

TEST(BeamSearch, WithEnoughRoomFindsTheBestOfAll) {
  set_seed(3);
  auto model = drawn_model();
  const Tensor<std::int64_t> src({1, 4}, {1, 5, 2, 6});
  // Every target of up to two of the tokens 3, 4, 5 and unknown.
  std::map<double, Ids, std::greater<>> all;
  const auto add = [&](const Ids& tokens, bool ends) {
    all.emplace(log_probability(model, src, tokens, ends), tokens);
  };
  add({}, true);
  for (std::int64_t a = 3; a < 6; ++a) {
    add({a}, true);
    for (std::int64_t b = 3; b < 6; ++b) add({a, b}, false);
  }
  const auto found =
      beam_search(model, src.view().select(0, 0), {.beam = 16, .max_len = 2, .length_penalty = 0});
  ASSERT_EQ(found.size(), all.size());
  auto expected = all.begin();
  for (const auto& hypothesis : found) {
    EXPECT_EQ(hypothesis.tokens, expected->second);
    EXPECT_NEAR(hypothesis.log_probability, expected->first, 1e-12);
    EXPECT_EQ(hypothesis.is_complete, hypothesis.tokens.size() < 2);
    ++expected;
  }
}

TEST(BeamSearch, OfOneIsGreedy) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    set_seed(seed);
    auto model = drawn_model();
    const Tensor<std::int64_t> src({1, 3}, {4, 4, 1});
    const auto greedy = greedy_search(model, src, {}, {.max_len = 12}).front();
    const auto beam = beam_search(model, src.view().select(0, 0), {.beam = 1, .max_len = 12});
    ASSERT_EQ(beam.size(), 1);
    EXPECT_EQ(beam.front().tokens, greedy.tokens);
    EXPECT_EQ(beam.front().is_complete, greedy.is_complete);
    EXPECT_NEAR(beam.front().log_probability, greedy.log_probability, 1e-12);
    EXPECT_NEAR(log_probability(model, src, greedy.tokens, greedy.is_complete),
                greedy.log_probability, 1e-12);
  }
}

TEST(BeamSearch, FollowsModelsOfEveryAttention) {
  const Tensor<std::int64_t> src({1, 4}, {1, 5, 2, 6});
  const auto agrees = [&](Seq2Seq<double>& model) {
    const auto found = beam_search(model, src.view().select(0, 0), {.beam = 3, .max_len = 4});
    ASSERT_EQ(found.size(), 3);
    for (const auto& hypothesis : found) {
      EXPECT_NEAR(log_probability(model, src, hypothesis.tokens, hypothesis.is_complete),
                  hypothesis.log_probability, 1e-12);
    }
  };
  set_seed(1);
  AttentionSeq2Seq<double> multihead(
      {.src_vocab_size = 7, .tgt_vocab_size = 6, .d_model = 8, .num_heads = 2, .num_layers = 1});
  agrees(multihead);
  for (const auto attention : {SourceAttention::kNone, SourceAttention::kAdditive,
                               SourceAttention::kDot, SourceAttention::kConcat}) {
    RecurrentSeq2Seq<double> model(
        {.src_vocab_size = 7, .tgt_vocab_size = 6, .d_model = 8, .attention = attention});
    agrees(model);
  }
}

TEST(Search, SaysWhereEachTokenLooked) {
  set_seed(0);
  AttentionSeq2Seq<double> model(
      {.src_vocab_size = 7, .tgt_vocab_size = 6, .d_model = 8, .num_heads = 2, .num_layers = 1});
  const Tensor<std::int64_t> src({2, 4}, {1, 5, 2, 6, 3, 3, 0, 0});
  const auto found = greedy_search(model, src, {4, 2}, {.max_len = 5});
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& [tokens, alignment, log_probability, is_complete] = found[i];
    const auto length = static_cast<std::int64_t>(tokens.size());
    ASSERT_GT(length, 0);
    EXPECT_EQ(alignment.shape(), (Shape{2, length, 4}));
    EXPECT_THAT(tokens, Each(testing::Ge(kEosId + 1)));
    for (std::int64_t t = 0; t < length; ++t) {
      const auto row = alignment.view().select(0, 1).select(0, t);
      EXPECT_NEAR(row(0) + row(1) + row(2) + row(3), 1, 1e-12);
      if (i == 1) {
        EXPECT_EQ(row(2) + row(3), 0);
      }
    }
  }
  const auto unaligned =
      greedy_search(model, src, {4, 2}, {.max_len = 5, .return_alignment = false});
  EXPECT_TRUE(unaligned[0].alignment.empty());
  EXPECT_EQ(unaligned[0].tokens, found[0].tokens);
  // The same source alone and in a batch.
  const Tensor<std::int64_t> alone({2}, {3, 3});
  const auto beam = beam_search(model, alone, {.beam = 1, .max_len = 5}).front();
  EXPECT_EQ(beam.tokens, found[1].tokens);
  EXPECT_NEAR(beam.alignment(0, 0, 1), found[1].alignment(0, 0, 1), 1e-12);
}

TEST(Search, WithoutAttentionHasNoAlignment) {
  RecurrentSeq2Seq<double> model({.src_vocab_size = 7,
                                  .tgt_vocab_size = 6,
                                  .d_model = 8,
                                  .attention = SourceAttention::kNone});
  const Tensor<std::int64_t> src({1, 2}, {4, 5});
  EXPECT_TRUE(greedy_search(model, src, {}, {.max_len = 3}).front().alignment.empty());
  EXPECT_FALSE(beam_search(model, src.view().select(0, 0), {.max_len = 3}).empty());
}

TEST(Search, OfNoLengthWritesNothing) {
  auto model = drawn_model();
  const Tensor<std::int64_t> src({1, 2}, {4, 5});
  EXPECT_TRUE(greedy_search(model, src, {}, {.max_len = 0}).front().tokens.empty());
  const auto found = beam_search(model, src.view().select(0, 0), {.max_len = 0});
  ASSERT_EQ(found.size(), 1);
  EXPECT_FALSE(found.front().is_complete);
}

TEST(Search, OfASourceOfOneToken) {
  set_seed(2);
  AttentionSeq2Seq<double> model(
      {.src_vocab_size = 7, .tgt_vocab_size = 6, .d_model = 8, .num_heads = 2, .num_layers = 1});
  const Tensor<std::int64_t> src({1, 1}, {5});
  const auto greedy = greedy_search(model, src, {}, {.max_len = 6}).front();
  const auto found = beam_search(model, src.view().select(0, 0), {.beam = 40, .max_len = 6});
  ASSERT_FALSE(found.empty());
  for (const auto& hypothesis : found) {
    EXPECT_NEAR(log_probability(model, src, hypothesis.tokens, hypothesis.is_complete),
                hypothesis.log_probability, 1e-12);
    for (const double weight : hypothesis.alignment.elements()) EXPECT_NEAR(weight, 1, 1e-12);
  }
  EXPECT_NEAR(log_probability(model, src, greedy.tokens, greedy.is_complete),
              greedy.log_probability, 1e-12);
}

TEST(Search, RefusesWhatDoesNotFit) {
  auto model = drawn_model();
  const Tensor<std::int64_t> src({1, 2}, {4, 5});
  EXPECT_THAT([&] { greedy_search(model, src, {}, {.max_len = -1}); }, Refuses("max_len", "-1"));
  EXPECT_THAT([&] { beam_search(model, src); }, Refuses("src", "[1, 2]"));
  EXPECT_THAT([&] { beam_search(model, src.view().select(0, 0), {.beam = 0}); },
              Refuses("beam", "0"));
  RecurrentSeq2Seq<double> wordless({.src_vocab_size = 7, .tgt_vocab_size = 2, .d_model = 8});
  EXPECT_THAT([&] { greedy_search(wordless, src); }, Refuses("vocabulary", "2"));
}

}  // namespace
}  // namespace heed::nn
