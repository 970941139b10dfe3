#include "text/split_patterns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "text/pattern.h"

namespace heed::text { namespace {

using testing::ElementsAre;

std::vector<std::string> matches_of(std::string_view text, std::string_view pattern) {
  std::vector<std::string> matches;
  Pattern(pattern).find(text, {0, text.size()}, [&](Span match) {
    matches.emplace_back(text.substr(match.begin, match.end - match.begin));
  });
  return matches;
}

TEST(SplitPatterns, Gpt2) {
  const auto split = [](std::string_view text) { return matches_of(text, split_patterns::kGpt2); };
  EXPECT_THAT(split("Hello  world's 12345!?\n\n x"),
              ElementsAre("Hello", " ", " world", "'s", " 12345", "!?", "\n\n", " x"));
  EXPECT_THAT(split("WE'LL we'll'"), ElementsAre("WE", "'", "LL", " we", "'ll", "'"));
  EXPECT_THAT(split("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(split("\u00E9t\u00E9\u00A0\u732B"), ElementsAre("\u00E9t\u00E9", "\u00A0", "\u732B"));
}

TEST(SplitPatterns, Llama3) {
  const auto split = [](std::string_view text) {
    return matches_of(text, split_patterns::kLlama3);
  };
  EXPECT_THAT(split("WE'LL pay 12345!!\n\n  x"),
              ElementsAre("WE", "'LL", " pay", " ", "123", "45", "!!\n\n", " ", " x"));
  EXPECT_THAT(split("(x) \n \n y"), ElementsAre("(x", ")", " \n \n", " y"));
  EXPECT_THAT(split("it'\u017F"), ElementsAre("it", "'\u017F"));
}

TEST(SplitPatterns, Qwen2) {
  EXPECT_THAT(matches_of("a 12", split_patterns::kQwen2), ElementsAre("a", " ", "1", "2"));
}

TEST(SplitPatterns, WordsOfTekkenBeginWithTheirCapitals) {
  const auto split = [](std::string_view text) {
    return matches_of(text, split_patterns::kTekken);
  };
  EXPECT_THAT(split("HTMLParser don't 12"), ElementsAre("HTMLParser", " don", "'t", " ", "1", "2"));
  EXPECT_THAT(split("aBC 猫a/\n"), ElementsAre("a", "BC", " 猫a", "/\n"));
  EXPECT_THAT(matches_of("DON'T 1234", split_patterns::kGpt4o),
              ElementsAre("DON'T", " ", "123", "4"));
}

TEST(SplitPatterns, APartKnowsNothingOfWhatFollows) {
  std::vector<Span> spans;
  Pattern(split_patterns::kGpt2).find("ab  cd", {1, 4}, [&](Span match) {
    spans.push_back(match);
  });
  EXPECT_THAT(spans, ElementsAre(Span{1, 2}, Span{2, 4}));
}

}  // namespace
}  // namespace heed::text
