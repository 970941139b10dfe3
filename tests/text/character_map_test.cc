#include "text/character_map.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::text { namespace {

using testing::HasSubstr;

std::string bytes_of_units(const std::vector<std::uint32_t>& units) {
  std::string bytes;
  const auto add = [&](std::uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  };
  add(static_cast<std::uint32_t>(units.size() * 4));
  for (const std::uint32_t unit : units) add(unit);
  return bytes;
}

constexpr std::uint32_t kValue = 1U << 31;
constexpr std::uint32_t kHasValue = 1U << 8;

// "a" becomes "x", "ab" becomes "yz". The blocks of children begin at 0, 256 and 512.
std::vector<std::uint32_t> small_units() {
  std::vector<std::uint32_t> units(768, 0);
  units['a'] = 'a' | kHasValue | ('a' ^ 256U) << 10;
  units[256] = kValue | 0;
  units[256 ^ 'b'] = 'b' | kHasValue | ((256U ^ 'b') ^ 512U) << 10;
  units[512] = kValue | 2;
  return units;
}

std::string small_map(const std::vector<std::uint32_t>& units = small_units()) {
  return bytes_of_units(units) + std::string("x\0yz\0", 5);
}

AlignedText as_text(std::string_view bytes) { return {bytes, 0}; }

TEST(CharacterMap, FindsTheShortestAndTheLongest) {
  ASSERT_EQ(CharacterMap::problem_of(small_map()), "");
  const CharacterMap map(small_map());
  EXPECT_EQ(map.shortest("abc")->replacement, "x");
  EXPECT_EQ(map.longest("abc")->replacement, "yz");
  EXPECT_EQ(map.longest("abc")->size, 2U);
  EXPECT_EQ(map.longest("b"), std::nullopt);
  EXPECT_EQ(map.longest(""), std::nullopt);
}

TEST(CharacterMap, ReplacesWithTheOriginOfAllThatItTakes) {
  const CharacterMap map(small_map());
  const AlignedText longest = replace_longest(as_text("cabda"), map);
  EXPECT_EQ(longest.bytes(), "cyzdx");
  EXPECT_EQ(longest.origin(2), (TextRange{1, 3}));
  EXPECT_EQ(replace_clusters(as_text("cabda"), map).bytes(), "cxbdx");
  // A letter with its mark is one character of a reader: the mark goes with it.
  EXPECT_EQ(replace_clusters(as_text("a\u0301b"), map).bytes(), "xb");
}

TEST(CharacterMap, BrokenMapsAreNamed) {
  const auto problem = [](const std::string& bytes) { return CharacterMap::problem_of(bytes); };
  EXPECT_THAT(problem("abc"), HasSubstr("has 3 bytes"));
  EXPECT_THAT(problem(std::string(4, '\0') + "x"), HasSubstr("gives its array 0 of 1 bytes"));
  EXPECT_THAT(problem(std::string(8, '\xFF')), HasSubstr("gives its array 4294967295 of 4 bytes"));
  EXPECT_THAT(problem(bytes_of_units(small_units())), HasSubstr("does not end with a NUL"));
  EXPECT_THAT(problem(bytes_of_units(small_units()) + std::string("\xC3\0", 2)),
              HasSubstr("UTF-8"));
  std::vector<std::uint32_t> units = small_units();
  units[256] = kValue | 5;
  EXPECT_THAT(problem(small_map(units)), HasSubstr("has the replacement 5 of 5 bytes"));
  units[256] = kValue | 0x7FFFFFFF;
  EXPECT_THAT(problem(small_map(units)), HasSubstr("has the replacement 2147483647"));
  units[256] = 0;
  EXPECT_THAT(problem(small_map(units)), HasSubstr("has a string without a replacement"));
  units = small_units();
  units['c'] = 'c' | 1U << 9 | 0x1FFFFFU << 10;
  EXPECT_THAT(problem(small_map(units)), HasSubstr("has a node beyond its 768 units"));
  units = small_units();
  units[0] = kValue;
  EXPECT_THAT(problem(small_map(units)), HasSubstr("has no node at its beginning"));
  units = small_units();
  units.resize(700);
  EXPECT_THAT(problem(small_map(units)), HasSubstr("has a node beyond its 700 units"));
  EXPECT_THAT(problem(bytes_of_units(small_units()) + std::string(300, 'x') + std::string(1, '\0')),
              HasSubstr("has a replacement of over 256 bytes"));
}

TEST(CharacterMap, Base64HasItsPaddingAndNothingElse) {
  EXPECT_EQ(bytes_of_base64("aGVlZA=="), "heed");
  EXPECT_EQ(bytes_of_base64("aGVl"), "hee");
  EXPECT_EQ(bytes_of_base64("+/8="), "\xFB\xFF");
  EXPECT_EQ(bytes_of_base64(""), "");
  for (const char* text : {"a", "aGVlZA", "aGVlZA=", "aG=lZA==", "aGV-", "====", "aGVl\n"}) {
    EXPECT_EQ(bytes_of_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace heed::text
