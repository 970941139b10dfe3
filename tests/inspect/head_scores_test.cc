#include "heed/inspect/head_scores.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "heed/attention/diagnostics.h"
#include "heed/attention/mask.h"
#include "heed/attention/reference.h"
#include "heed/core/error.h"
#include "heed/core/parallel.h"
#include "support/refusal.h"
#include "support/tensors.h"
#include "support/token_sequence.h"

namespace heed::inspect { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::normal;
using testing_support::Refuses;
using testing_support::tokens_of;

const char* const kText =
    "[CLS] the cat , the old cat ##s and the dog ##s , sat ; the cat sat . [SEP] the end [SEP]";

std::vector<TokenPattern> all_patterns() {
  std::vector<TokenPattern> patterns = text_patterns();
  patterns.push_back(induction());
  return patterns;
}

// One-hot queries and keys: query q of a head looks at target(q), whose score is 60 above the
// others.
Tensor<float> one_hot(std::int64_t n) {
  Tensor<float> tensor({1, 1, n, n});
  for (std::int64_t i = 0; i < n; ++i) tensor(0, 0, i, i) = 1;
  return tensor;
}
template <class Target>
Tensor<float> queries_at(std::int64_t n, Target target) {
  Tensor<float> query({1, 1, n, n});
  for (std::int64_t q = 0; q < n; ++q) query(0, 0, q, target(q)) = 60;
  return query;
}

struct Measured {
  std::vector<HeadMeasures> heads;
  std::vector<TokenPattern> patterns;

  const PatternScore& of(const std::string& name, std::size_t head = 0) const {
    const auto at = std::find_if(patterns.begin(), patterns.end(),
                                 [&](const TokenPattern& pattern) { return pattern.name == name; });
    return heads[head].patterns[static_cast<std::size_t>(at - patterns.begin())];
  }
};

Measured measure(FloatView query, FloatView key, const AttentionOptions& options,
                 const TokenSequence& tokens, std::int64_t max_offset = 16) {
  HeadScorer scorer(all_patterns(), query.extent(1), max_offset);
  scorer.add(query, key, options, tokens, 7);
  return {scorer.measures(), scorer.patterns()};
}

// Where the mask shows each query the keys before it, diagnostics and the explorer's map measure
// the score of the pattern of the same name.
TEST(HeadScorer, AgreesWithTheDiagnostics) {
  const TokenSequence tokens = tokens_of(kText);
  const std::int64_t n = tokens.length();
  const Tensor<float> query = normal<float>({1, 2, n, 8}, 1);
  const Tensor<float> key = normal<float>({1, 2, n, 8}, 2);
  const AttentionOptions options{.mask = causal()};
  const Measured found = measure(query, key, options, tokens);
  const std::vector<HeadDiagnostics> expected = attention_diagnostics(query, key, options).heads;
  for (std::size_t head = 0; head < expected.size(); ++head) {
    EXPECT_NEAR(found.of("previous token", head).score, expected[head].previous, 1e-6);
    EXPECT_NEAR(found.of("first token", head).score, expected[head].first, 1e-6);
    EXPECT_NEAR(found.of("same token", head).score, expected[head].same, 1e-6);
    EXPECT_EQ(found.of("next token", head).score, expected[head].next);
    EXPECT_EQ(found.heads[head].offset, expected[head].offset);
    EXPECT_NEAR(found.heads[head].at_offset.score, expected[head].offset_weight, 1e-6);
  }
}

TEST(HeadScorer, APreviousTokenHeadScoresOne) {
  const TokenSequence tokens = tokens_of("a b c d e f g h");
  const Tensor<float> query =
      queries_at(8, [](std::int64_t q) { return std::max<std::int64_t>(q - 1, 0); });
  const Measured found = measure(query, one_hot(8), {.scale = 1.0F}, tokens);
  EXPECT_NEAR(found.of("previous token").score, 1, 1e-6);
  EXPECT_EQ(found.of("previous token").rows, 7);  // the first token has no previous one
  EXPECT_NEAR(found.of("previous token").uniform, 1.0 / 8, 1e-12);
  EXPECT_NEAR(found.of("next token").score, 0, 1e-6);
  EXPECT_NEAR(found.of("first token").score, 2.0 / 8, 1e-6);
  const HeadMeasures& head = found.heads[0];
  EXPECT_EQ(head.rows, 8);
  EXPECT_EQ(head.offset, -1);
  EXPECT_NEAR(head.at_offset.score, 1, 1e-6);
  EXPECT_EQ(head.peak_offset, -1);
  EXPECT_EQ(head.peak_share, 1);
  EXPECT_NEAR(head.confidence, 1, 1e-6);
}

TEST(HeadScorer, AHeadOfSomeOtherOffset) {
  const TokenSequence tokens = tokens_of("a b c d e f g h");
  const Tensor<float> query =
      queries_at(8, [](std::int64_t q) { return std::min<std::int64_t>(q + 3, 7); });
  const Measured found = measure(query, one_hot(8), {.scale = 1.0F}, tokens);
  EXPECT_EQ(found.heads[0].offset, 3);
  EXPECT_NEAR(found.heads[0].at_offset.score, 1, 1e-6);
  EXPECT_EQ(found.heads[0].at_offset.rows, 5);
  EXPECT_EQ(found.heads[0].peak_offset, 3);
  // Beyond the largest examined offset.
  EXPECT_NE(measure(query, one_hot(8), {.scale = 1.0F}, tokens, 2).heads[0].offset, 3);
}

TEST(HeadScorer, AnInductionHeadScoresOne) {
  const TokenSequence tokens = tokens_of("[BOS] a b c a b c");
  const std::int64_t targets[] = {0, 0, 0, 0, 2, 3, 4};
  const Tensor<float> query = queries_at(7, [&](std::int64_t q) { return targets[q]; });
  const Measured found = measure(query, one_hot(7), {.mask = causal(), .scale = 1.0F}, tokens);
  EXPECT_NEAR(found.of("induction").score, 1, 1e-6);
  EXPECT_EQ(found.of("induction").rows, 3);
  EXPECT_EQ(found.of("induction").strongest.text, 7);
  EXPECT_NEAR(found.of("duplicate token").score, 0, 1e-6);
  EXPECT_EQ(found.of("duplicate token").rows, 3);
  EXPECT_EQ(found.of("next token").rows, 0);  // hidden
}

// Computes the score, its chance level, its rows and its strongest example by the definitions in
// the header.
PatternScore by_loops(const Tensor<double>& weights, const Tensor<bool>& visible,
                      const TokenPattern& pattern, const TokenSequence& tokens, std::int64_t head) {
  PatternScore expected;
  for (std::int64_t q = 0; q < tokens.length(); ++q) {
    std::vector<std::int64_t> keys;
    pattern.keys(tokens, q, keys);
    double sum = 0;
    double in = 0;
    double seen = 0;
    WeightExample largest = expected.strongest;
    for (std::int64_t k = 0; k < tokens.length(); ++k) {
      if (!visible(0, head, q, k)) continue;
      ++seen;
      if (std::find(keys.begin(), keys.end(), k) == keys.end()) continue;
      ++in;
      sum += weights(q, k);
      if (weights(q, k) > largest.weight) largest = {7, q, k, weights(q, k)};
    }
    if (in == 0 || in == seen) continue;
    expected.strongest = largest;
    expected.score += sum;
    expected.uniform += in / seen;
    ++expected.rows;
  }
  if (expected.rows > 0) {
    expected.score /= static_cast<double>(expected.rows);
    expected.uniform /= static_cast<double>(expected.rows);
  }
  return expected;
}

Tensor<double> weights_in_double(const Tensor<float>& query, const Tensor<float>& key,
                                 const AttentionOptions& options, std::int64_t head) {
  std::vector<AttentionRow> rows;
  for (std::int64_t q = 0; q < query.extent(2); ++q) rows.push_back({0, head, q});
  AttentionOptions64 wide{.mask = options.mask};
  if (options.scale) wide.scale = static_cast<double>(*options.scale);
  return reference::attention_weights(testing_support::converted<double>(query),
                                      testing_support::converted<double>(key), rows, wide);
}

void expect_as_by_loops(const AttentionOptions& options, std::int64_t repeats) {
  std::string text = kText;
  for (std::int64_t i = 1; i < repeats; ++i) text += std::string(" ") + kText;
  const TokenSequence tokens = tokens_of(text);
  const std::int64_t n = tokens.length();
  const Tensor<float> query = normal<float>({1, 4, n, 8}, 1);
  const Tensor<float> key = normal<float>({1, 2, n, 8}, 2);
  const Measured found = measure(query, key, options, tokens);
  const Tensor<bool> visible =
      materialize_allow(options.mask, {.num_heads = 4, .q_len = n, .kv_len = n});
  const auto full = visible.view().broadcast_to({1, 4, n, n});
  for (std::int64_t head = 0; head < 4; ++head) {
    const Tensor<double> weights = weights_in_double(query, key, options, head);
    for (const TokenPattern& pattern : found.patterns) {
      const PatternScore& score = found.of(pattern.name, static_cast<std::size_t>(head));
      const PatternScore expected = by_loops(weights, to_tensor(full), pattern, tokens, head);
      SCOPED_TRACE(pattern.name);
      EXPECT_EQ(score.rows, expected.rows);
      EXPECT_NEAR(score.score, expected.score, 1e-6);
      EXPECT_NEAR(score.uniform, expected.uniform, 1e-12);
      EXPECT_EQ(score.strongest.query, expected.strongest.query);
      EXPECT_EQ(score.strongest.key, expected.strongest.key);
      EXPECT_EQ(score.strongest.text, expected.strongest.text);
      EXPECT_NEAR(score.strongest.weight, expected.strongest.weight, 1e-6);
    }
  }
}

TEST(HeadScorer, ScoresAreThoseOfPlainLoops) { expect_as_by_loops({}, 1); }
TEST(HeadScorer, UnderACausalMask) { expect_as_by_loops({.mask = causal(), .scale = 0.7F}, 1); }
// 92 tokens: more than one block of rows.
TEST(HeadScorer, UnderAWindowAndOverSeveralBlocks) {
  expect_as_by_loops({.mask = causal() & sliding_window(20, 0)}, 4);
}
TEST(HeadScorer, UnderAMaskThatHeadsDoNotShare) {
  const Mask mask = Mask::where([](std::int32_t, std::int32_t head, std::int32_t q,
                                   std::int32_t k) { return (q + k) % (head + 2) != 1; });
  expect_as_by_loops({.mask = mask}, 1);
}

TEST(HeadScorer, KeysThatAnAdditiveMaskHidesAreNotSeen) {
  Tensor<float> added({8, 8});
  for (std::int64_t q = 0; q < 8; ++q) added(q, 2) = -testing_support::kInfinity;
  const TokenSequence tokens = tokens_of("a b , d e f g h");
  const Tensor<float> x = normal<float>({1, 1, 8, 4}, 1);
  const Measured found = measure(x, x, {.mask = Mask::additive(std::move(added))}, tokens);
  EXPECT_EQ(found.of("punctuation").rows, 0);
  EXPECT_NEAR(found.of("first token").uniform, 1.0 / 7, 1e-12);
}

TEST(HeadScorer, TextsAreMeansOverAllTheirRows) {
  const TokenSequence tokens = tokens_of("a b c d");
  const Tensor<float> key = one_hot(4);
  const Tensor<float> before =
      queries_at(4, [](std::int64_t q) { return std::max<std::int64_t>(q - 1, 0); });
  const Tensor<float> itself = queries_at(4, [](std::int64_t q) { return q; });
  HeadScorer scorer({previous_token(), same_token()}, 1);
  scorer.add(before, key, {.scale = 1.0F}, tokens, 0);
  scorer.add(itself, key, {.scale = 1.0F}, tokens, 1);
  const HeadMeasures head = scorer.measures().front();
  EXPECT_NEAR(head.patterns[0].score, 0.5, 1e-6);
  EXPECT_EQ(head.patterns[0].rows, 6);
  EXPECT_EQ(head.patterns[0].strongest.text, 0);
  EXPECT_NEAR(head.patterns[1].score, 5.0 / 8, 1e-6);  // the first token occurs twice
  EXPECT_EQ(head.rows, 8);
}

// Rows that see one key or a NaN are not scored.
TEST(HeadScorer, RowsWithoutAChoiceAndBrokenRowsDoNotCount) {
  const TokenSequence tokens = tokens_of("a b c d");
  const Tensor<float> key = one_hot(4);
  Tensor<float> query = queries_at(4, [](std::int64_t) { return 0; });
  query(0, 0, 3, 0) = testing_support::kNaN;
  const Measured found = measure(query, key, {.mask = causal(), .scale = 1.0F}, tokens);
  EXPECT_EQ(found.heads[0].rows, 2);
  EXPECT_EQ(found.heads[0].broken_rows, 1);
  EXPECT_EQ(found.of("first token").rows, 2);
  EXPECT_NEAR(found.of("first token").score, 1, 1e-6);
}

TEST(HeadScorer, OfNothingThereIsNothing) {
  HeadScorer scorer(all_patterns(), 2);
  for (const HeadMeasures& head : scorer.measures()) {
    EXPECT_EQ(head.rows, 0);
    EXPECT_EQ(head.confidence, 0);
    ASSERT_EQ(head.patterns.size(), 9U);
    EXPECT_EQ(head.patterns[0].rows, 0);
  }
}

TEST(HeadScorer, ThreadsMakeNoDifference) {
  const TokenSequence tokens = tokens_of(kText);
  const Tensor<float> x = normal<float>({1, 4, tokens.length(), 8}, 1);
  const auto scores = [&](int threads) {
    const ThreadLimit limit(threads);
    std::vector<double> result;
    for (const HeadMeasures& head : measure(x, x, {}, tokens).heads) {
      for (const PatternScore& score : head.patterns) result.push_back(score.score);
      result.push_back(head.at_offset.score);
      result.push_back(head.confidence);
    }
    return result;
  };
  EXPECT_EQ(scores(1), scores(4));
}

TEST(HeadScorer, SaysWhatDoesNotFit) {
  const TokenSequence tokens = tokens_of("a b c d");
  const Tensor<float> x = one_hot(4);
  HeadScorer scorer(text_patterns(), 1);
  EXPECT_THAT([&] { scorer.add(x, x, {}, tokens_of("a b c")); }, Refuses("query", "[1, 1, 4, 4]"));
  EXPECT_THAT([&] { scorer.add(x, x.view().slice(2, 0, 3), {}, tokens); },
              Refuses("key", "[1, 1, 3, 4]"));
  TokenSequence broken = tokens;
  broken.words.pop_back();
  EXPECT_THAT([&] { scorer.add(x, x, {}, broken); },
              ThrowsMessage<InvalidArgument>(HasSubstr("4 of punctuation and 3 words")));
  EXPECT_THAT([] { HeadScorer(text_patterns(), -1); }, Refuses("num_heads", "-1"));
  EXPECT_THAT([] { HeadScorer(text_patterns(), 1, 4097); }, Refuses("max_offset", "4097"));
  TokenPattern pattern = previous_token();
  pattern.name = "mine";
  pattern.keys = nullptr;
  EXPECT_THAT([&] { HeadScorer({pattern}, 1); },
              ThrowsMessage<InvalidArgument>(HasSubstr("\"mine\" has no function of keys")));
}

TEST(HeadScorer, AFailureLeavesWhatThereWas) {
  const TokenSequence tokens = tokens_of("a b c d");
  const Tensor<float> x = one_hot(4);
  bool is_wrong = false;
  TokenPattern pattern = previous_token();
  pattern.keys = [&](const TokenSequence&, std::int64_t q, std::vector<std::int64_t>& keys) {
    keys.push_back(is_wrong && q == 3 ? 4 : 0);
  };
  HeadScorer scorer({pattern}, 1);
  scorer.add(x, x, {}, tokens);
  is_wrong = true;
  EXPECT_THAT([&] { scorer.add(x, x, {}, tokens); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("the pattern \"previous token\" gives key 4 after key -1, expected "
                            "rising keys of 4 tokens")));
  EXPECT_EQ(scorer.measures().front().rows, 4);
}

}  // namespace
}  // namespace heed::inspect
