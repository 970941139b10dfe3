#include "heed/inspect/patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/token_sequence.h"

namespace heed::inspect { namespace {

using testing_support::tokens_of;

// Returns a line for each query: 'x' where the pattern contains the key.
std::string matrix_of(const TokenPattern& pattern, const TokenSequence& tokens) {
  std::string matrix;
  for (std::int64_t q = 0; q < tokens.length(); ++q) {
    std::vector<std::int64_t> keys;
    pattern.keys(tokens, q, keys);
    std::string row(static_cast<std::size_t>(tokens.length()), '.');
    for (const std::int64_t key : keys) row[static_cast<std::size_t>(key)] = 'x';
    matrix += row + '\n';
  }
  return matrix;
}

TEST(TokenPatterns, Neighbours) {
  const TokenSequence tokens = tokens_of("a b c");
  EXPECT_EQ(matrix_of(previous_token(), tokens), "...\nx..\n.x.\n");
  EXPECT_EQ(matrix_of(next_token(), tokens), ".x.\n..x\n...\n");
  EXPECT_EQ(matrix_of(same_token(), tokens), "x..\n.x.\n..x\n");
  EXPECT_EQ(matrix_of(first_token(), tokens), "x..\nx..\nx..\n");
}

TEST(TokenPatterns, OfNoTokens) {
  for (const TokenPattern& pattern : text_patterns()) EXPECT_EQ(matrix_of(pattern, {}), "");
}

// The first token has its own pattern.
TEST(TokenPatterns, SeparatorsAreSpecialTokensBehindTheFirst) {
  EXPECT_EQ(matrix_of(separators(), tokens_of("[CLS] a [SEP] b [SEP]")),
            "..x.x\n..x.x\n..x.x\n..x.x\n..x.x\n");
}

TEST(TokenPatterns, Punctuation) {
  EXPECT_EQ(matrix_of(punctuation(), tokens_of("[CLS] a , !")), "..xx\n..xx\n..xx\n..xx\n");
}

TEST(TokenPatterns, TheOtherTokensOfAWord) {
  EXPECT_EQ(matrix_of(same_word(), tokens_of("[CLS] un ##know ##n a .")),
            "......\n..xx..\n.x.x..\n.xx...\n......\n......\n");
}

// Special tokens are excluded: they stand for no text that could be repeated.
TEST(TokenPatterns, DuplicatesAreOnBothSides) {
  EXPECT_EQ(matrix_of(duplicate_token(), tokens_of("a [S] b a [S]")),
            "...x.\n.....\n.....\nx....\n.....\n");
}

TEST(TokenPatterns, InductionLooksBehindEarlierOccurrences) {
  EXPECT_EQ(matrix_of(induction(), tokens_of("a b a b a")), ".....\n.....\n.x...\n..x..\n.x.x.\n");
}

// The token after the earlier "a" is the query itself: the pattern contains nothing there.
TEST(TokenPatterns, InductionNeverFindsTheQuery) {
  EXPECT_EQ(matrix_of(induction(), tokens_of("a a a")), "...\n...\n.x.\n");
}

TEST(TokenPatterns, AreToldApartByName) {
  std::vector<std::string> names;
  for (const TokenPattern& pattern : text_patterns()) names.push_back(pattern.name);
  EXPECT_THAT(names,
              testing::ElementsAre("previous token", "next token", "same token", "first token",
                                   "separators", "punctuation", "same word", "duplicate token"));
  EXPECT_EQ(induction().name, "induction");
  EXPECT_EQ(induction().threshold, 0.4);
}

}  // namespace
}  // namespace heed::inspect
