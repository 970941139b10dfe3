#include "text/pattern.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace heed::text { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

std::vector<std::string> found(std::string_view pattern, std::string_view text) {
  std::vector<std::string> matches;
  Pattern(pattern).find(text, {0, text.size()}, [&](Span match) {
    matches.emplace_back(text.substr(match.begin, match.end - match.begin));
  });
  return matches;
}

void expect_pattern_refused(std::string_view pattern, const std::string& problem) {
  EXPECT_THAT([&] { Pattern{pattern}; }, ThrowsMessage<PatternError>(HasSubstr(problem)))
      << pattern;
}

TEST(Pattern, AlternativesAreTriedInOrder) {
  EXPECT_THAT(found("a|ab", "abab"), ElementsAre("a", "a"));
  EXPECT_THAT(found("ab|a", "aba"), ElementsAre("ab", "a"));
  EXPECT_THAT(found("(a|b)c|b", "acbcb"), ElementsAre("ac", "bc", "b"));
}

TEST(Pattern, RepetitionsTakeAllAndGiveBack) {
  EXPECT_THAT(found("a*ab", "aaab"), ElementsAre("aaab"));
  EXPECT_THAT(found("a{2,3}", "aaaaa"), ElementsAre("aaa", "aa"));
  EXPECT_THAT(found("a{2}", "aaa"), ElementsAre("aa"));
  EXPECT_THAT(found("(?:ab)+c", "ababcabab"), ElementsAre("ababc"));
  EXPECT_THAT(found("(?:ab){2,}", "abababx"), ElementsAre("ababab"));
}

TEST(Pattern, PossessiveRepetitionsGiveNothingBack) {
  EXPECT_THAT(found("a++b|a", "aab"), ElementsAre("aab"));
  EXPECT_THAT(found("[ab]++b|x", "aab"), IsEmpty());
  EXPECT_THAT(found("a?+a|b", "ab"), ElementsAre("b"));
  EXPECT_THAT(found("a*+b", "aaab"), ElementsAre("aaab"));
}

TEST(Pattern, ClassesAreUnionsAndWhatIsOutside) {
  EXPECT_THAT(found(R"([^\s\p{L}\p{N}]+)", "a1 +-é?"), ElementsAre("+-", "?"));
  EXPECT_THAT(found(R"([^(\s|[.,])]+)", "ab(c|d.e f)"), ElementsAre("ab", "c", "d", "e", "f"));
  EXPECT_THAT(found(R"([a-c\-])", "a-d"), ElementsAre("a", "-"));
  EXPECT_THAT(found(R"(\P{L}\p{Lu}\d\S\D)", "1A2x "), ElementsAre("1A2x "));
  EXPECT_THAT(found("[一-龥]+|[À-ÿ]", "猫é𠀀"), ElementsAre("猫", "é"));
  EXPECT_THAT(found(".", "a\nb"), ElementsAre("a", "b"));
}

TEST(Pattern, LooksAtTheNextCharacter) {
  EXPECT_THAT(found(R"(\s+(?!\S)|\s+)", "a   b  "), ElementsAre("  ", " ", "  "));
  EXPECT_THAT(found(R"(a(?=b))", "aab"), ElementsAre("a"));
  EXPECT_THAT(found(R"(\s+$)", "a  b \nc "), ElementsAre(" ", " "));
}

TEST(Pattern, CaseOfAsciiIsIgnoredWithItsTwoOtherLetters) {
  EXPECT_THAT(found("(?i:'s|k)", "'S 's '\u017F K k \u212A"),
              ElementsAre("'S", "'s", "'\u017F", "K", "k", "\u212A"));
  EXPECT_THAT(found("(?i:a)b", "Ab AB"), ElementsAre("Ab"));
}

TEST(Pattern, WhatIsOutsideTheSyntaxIsNamed) {
  expect_pattern_refused(R"(a(?<=b))", "has '(?<' at byte 1, which heed does not know");
  expect_pattern_refused(R"(\w+)", R"(has '\w' at byte 0)");
  expect_pattern_refused(R"(x\p{Han})", R"(has '\p{Han}' at byte 1)");
  expect_pattern_refused(R"([a&&b])", "has '&&'");
  expect_pattern_refused(R"([[:alpha:]])", "has ':'");
  expect_pattern_refused("a*?", "has '?'");
  expect_pattern_refused("(?:ab)++", "has '+'");
  expect_pattern_refused("^a", "has '^'");
  expect_pattern_refused("[b-a]", "has '-a'");
  expect_pattern_refused("(?i:é)", "ignores the case of more than ASCII's");
  expect_pattern_refused("a{65}", "has '6'");
  for (const char* pattern : {"(a", "[a", "a\\", R"(\p{L)", "(?=a"}) {
    expect_pattern_refused(pattern, "");
  }
  expect_pattern_refused("a)", "has ')'");
}

TEST(Pattern, EveryMatchHasACharacter) {
  for (const char* pattern : {"", "a*", "a|", "(?=a)", "(?:a?|b)"}) {
    expect_pattern_refused(pattern, "matches the empty text");
  }
  expect_pattern_refused("(?:a?)+b", "repeats '(?:a?)+', which matches the empty text");
}

TEST(Pattern, SizesAreBounded) {
  expect_pattern_refused(std::string(5000, 'a'), "is too large");
  expect_pattern_refused("(?:(?:(?:a{64}){64}){64}){64}", "is too large");
  expect_pattern_refused(std::string(100, '(') + "a" + std::string(100, ')'), "too many groups");
  expect_pattern_refused(std::string(100, '[') + "a" + std::string(100, ']'), "too many groups");
}

// A backtracking engine would take hours.
TEST(Pattern, TakesLinearTimeWhateverItIs) {
  const std::string many(std::size_t{1} << 18, 'a');
  EXPECT_THAT(found("(?:a|a)+b", many), IsEmpty());
  EXPECT_THAT(found("a*a*a*b|x", many), IsEmpty());
  EXPECT_THAT(found("a++b", many), IsEmpty());
  EXPECT_THAT(found("(?:a+)+b|(?:aa|a)+c", many), IsEmpty());
  EXPECT_THAT(found(R"(\s+$)", std::string(std::size_t{1} << 18, ' ') + "a"), IsEmpty());
}

}  // namespace
}  // namespace heed::text
