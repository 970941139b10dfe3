// Finds the sequences that share their first pages.
#include "attention/cache/shared_prefixes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace heed { namespace {

using detail::Page;

// Returns the prefixes as text, level after level: members:begin-end of each range.
std::string text_of(const detail::SharedPrefixes& found) {
  std::string text;
  for (const auto& level : found.levels) {
    for (const auto& prefix : level) {
      for (std::int64_t i = prefix.members.begin; i < prefix.members.end; ++i) {
        text += static_cast<char>('a' + found.order[static_cast<std::size_t>(i)]);
      }
      text += ':' + std::to_string(prefix.stretches.begin) + '-' +
              std::to_string(prefix.stretches.end) + ' ';
    }
    text += "| ";
  }
  return text;
}

// Writes pages as letters: equal letters are the same page.
std::string prefixes_of(const std::vector<std::string>& sequences, std::int64_t stretch) {
  static std::vector<Page> pages(128);
  std::vector<std::vector<Page*>> tables;
  for (const std::string& letters : sequences) {
    tables.emplace_back();
    for (const char letter : letters) {
      tables.back().push_back(&pages[static_cast<std::size_t>(letter)]);
    }
  }
  const std::vector<std::span<Page* const>> beginnings(tables.begin(), tables.end());
  return text_of(detail::find_shared_prefixes(beginnings, stretch));
}

TEST(SharedPrefixes, AreFoundLevelByLevel) {
  EXPECT_EQ(prefixes_of({}, 1), "");
  EXPECT_EQ(prefixes_of({"AB"}, 1), "");
  EXPECT_EQ(prefixes_of({"AB", "CD", "", "EB"}, 1), "");
  EXPECT_EQ(prefixes_of({"AB", "AB"}, 1), "ab:0-2 | ");
  EXPECT_EQ(prefixes_of({"ABC", "D", "AB", "ABE"}, 1), "cad:0-2 | ");
  EXPECT_EQ(prefixes_of({"ABC", "Q", "ABC", "ABE", "XY", "XZ"}, 1), "acd:0-2 ef:0-1 | ac:2-3 | ");
  EXPECT_EQ(prefixes_of({"ABCD", "ABCE", "ABFG", "ABFH", "AI", "AJ"}, 1),
            "abcdef:0-1 | abcd:1-2 | ab:2-3 cd:2-3 | ");
}

TEST(SharedPrefixes, AreWholeStretches) {
  EXPECT_EQ(prefixes_of({"ABCD", "ABCE"}, 2), "ab:0-1 | ");
  EXPECT_EQ(prefixes_of({"ABCDEF", "ABCDEG", "ABCX"}, 2), "abc:0-1 | ab:1-2 | ");
  EXPECT_EQ(prefixes_of({"ABCD", "ABCD"}, 2), "ab:0-2 | ");
  EXPECT_EQ(prefixes_of({"ABCD", "ABCE"}, 4), "");
}

}  // namespace
}  // namespace heed
