#include "io/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace heed::unicode { namespace {

using std::string_literals::operator""s;

TEST(Unicode, FindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid(""), std::nullopt);
  EXPECT_EQ(find_invalid("naïve 猫 😀\0 end"s), std::nullopt);
  EXPECT_EQ(find_invalid("\xF4\x8F\xBF\xBF"), std::nullopt) << "U+10FFFF is the last code point";
  EXPECT_EQ(find_invalid("ab\xC3"), 2U) << "truncated";
  EXPECT_EQ(find_invalid("ab\xE7\x8C"), 2U) << "truncated";
  EXPECT_EQ(find_invalid("a\x80"), 1U) << "a continuation alone";
  EXPECT_EQ(find_invalid("abc\xC0\x80"), 3U) << "NUL, overlong";
  EXPECT_EQ(find_invalid("\xE0\x9F\xBF"), 0U) << "overlong";
  EXPECT_EQ(find_invalid("\xF0\x8F\xBF\xBF"), 0U) << "overlong";
  EXPECT_EQ(find_invalid("x\xED\xA0\x80"), 1U) << "the surrogate U+D800";
  EXPECT_EQ(find_invalid("\xF4\x90\x80\x80"), 0U) << "U+110000";
  EXPECT_EQ(find_invalid("\xFF"), 0U);
}

TEST(Unicode, KeepsGraphemeClustersWhole) {
  EXPECT_EQ(grapheme_size("ab"), 1U);
  EXPECT_EQ(grapheme_size("e\u0301x"), 3U) << "e and an acute accent";
  EXPECT_EQ(grapheme_size("👩‍👩‍👧x"), std::string("👩‍👩‍👧").size());
  EXPECT_EQ(grapheme_size("🇩🇪🇫🇷"), 8U) << "one flag";
  EXPECT_EQ(grapheme_size("\r\n\n"), 2U);
}

TEST(Unicode, CountsTerminalColumns) {
  EXPECT_EQ(columns(""), 0);
  EXPECT_EQ(columns("cat"), 3);
  EXPECT_EQ(columns("e\u0301"), 1);
  EXPECT_EQ(columns("猫が"), 4);
  EXPECT_EQ(columns("한글"), 4);
  EXPECT_EQ(columns("👩‍👩‍👧"), 2);
  EXPECT_EQ(columns("🇩🇪"), 2);
  EXPECT_EQ(columns("❤\uFE0F"), 2);
  EXPECT_EQ(prefix_of_columns("猫が好き", 5), "猫が");
  EXPECT_EQ(prefix_of_columns("e\u0301e\u0301", 1), "e\u0301");
  EXPECT_EQ(prefix_of_columns("cat", 3), "cat");
  EXPECT_EQ(prefix_of_columns("cat", 0), "");
}

TEST(Unicode, ClassifiesCharacters) {
  EXPECT_TRUE(is_word_character(U'ß'));
  EXPECT_TRUE(is_word_character(U'٣'));
  EXPECT_FALSE(is_word_character(U'_'));
  EXPECT_TRUE(is_whitespace(U'\u00A0'));
  EXPECT_TRUE(is_whitespace(0x85));
  EXPECT_FALSE(is_whitespace(0));
  EXPECT_TRUE(is_ideograph(U'猫'));
  EXPECT_TRUE(is_ideograph(U'ー'));
  EXPECT_FALSE(is_ideograph(U'한'));
  EXPECT_FALSE(is_ideograph(U'Ａ'));
}

TEST(Unicode, MakesEveryByteLegible) {
  EXPECT_EQ(legible("plain, naïve, 猫, 👩‍👩‍👧"),
            "plain, naïve, 猫, 👩‍👩‍👧");
  EXPECT_EQ(legible("\x1B[31m\a\x7F"), "\\x1B[31m\\x07\\x7F");
  EXPECT_EQ(legible("a\nb\tc\rd\0"s), "a\\nb\\tc\\rd\\x00");
  EXPECT_EQ(legible("\u009B31m"), "\\u{9B}31m") << "C1's control sequence introducer";
  EXPECT_EQ(legible("\u202Eevil\u2066"), "\\u{202E}evil\\u{2066}");
  EXPECT_EQ(legible("\u2028\uFEFF"), "\\u{2028}\\u{FEFF}");
  EXPECT_EQ(legible("ok\xC3"), "ok\\xC3");
  EXPECT_EQ(legible("\u0301e\u0301 \u0301"), "◌\u0301e\u0301 ◌\u0301");
}

}  // namespace
}  // namespace heed::unicode
