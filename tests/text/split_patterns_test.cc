#include "text/split_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace heed::text { namespace {

using testing::ElementsAre;

std::vector<std::string> matches_of(std::string_view text, SplitPattern pattern) {
  std::vector<Span> spans;
  append_matches(spans, text, {0, text.size()}, pattern);
  std::vector<std::string> matches;
  matches.reserve(spans.size());
  for (const auto& [begin, end] : spans) matches.emplace_back(text.substr(begin, end - begin));
  return matches;
}

TEST(SplitPatterns, Gpt2) {
  const auto split = [](std::string_view text) { return matches_of(text, SplitPattern::kGpt2); };
  EXPECT_THAT(split("Hello  world's 12345!?\n\n x"),
              ElementsAre("Hello", " ", " world", "'s", " 12345", "!?", "\n\n", " x"));
  EXPECT_THAT(split("WE'LL we'll'"), ElementsAre("WE", "'", "LL", " we", "'ll", "'"));
  EXPECT_THAT(split("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(split("\u00E9t\u00E9\u00A0\u732B"), ElementsAre("\u00E9t\u00E9", "\u00A0", "\u732B"));
}

TEST(SplitPatterns, Llama3) {
  const auto split = [](std::string_view text) { return matches_of(text, SplitPattern::kLlama3); };
  EXPECT_THAT(split("WE'LL pay 12345!!\n\n  x"),
              ElementsAre("WE", "'LL", " pay", " ", "123", "45", "!!\n\n", " ", " x"));
  EXPECT_THAT(split("(x) \n \n y"), ElementsAre("(x", ")", " \n \n", " y"));
  EXPECT_THAT(split("it'\u017F"), ElementsAre("it", "'\u017F"));
}

TEST(SplitPatterns, Qwen2) {
  EXPECT_THAT(matches_of("a 12", SplitPattern::kQwen2), ElementsAre("a", " ", "1", "2"));
}

TEST(SplitPatterns, AreFoundByTheirText) {
  for (const SplitPattern pattern :
       {SplitPattern::kGpt2, SplitPattern::kLlama3, SplitPattern::kQwen2}) {
    ASSERT_NE(find_pattern(pattern_text(pattern)), nullptr);
    EXPECT_EQ(*find_pattern(pattern_text(pattern)), pattern);
  }
  EXPECT_EQ(find_pattern("\\w+"), nullptr);
}

TEST(SplitPatterns, APartKnowsNothingOfWhatFollows) {
  std::vector<Span> spans;
  append_matches(spans, "ab  cd", {1, 4}, SplitPattern::kGpt2);
  EXPECT_THAT(spans, ElementsAre(Span{1, 2}, Span{2, 4}));
}

}  // namespace
}  // namespace heed::text
