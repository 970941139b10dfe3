#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "heads/head_report.h"

namespace heed::cli { namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(TextPieces, ParagraphsAreJoinedUntilTheyAreLong) {
  EXPECT_THAT(text_pieces("aa\n\nbb\nbb\n\ncc\n\ndddd\n\ne", 4, 10),
              ElementsAre("aa\n\nbb\nbb", "cc\n\ndddd", "e"));
  EXPECT_THAT(text_pieces("aa\n\nbb\n\ncc", 1, 10), ElementsAre("aa", "bb", "cc"));
}

TEST(TextPieces, NoMoreThanSoMany) {
  EXPECT_THAT(text_pieces("aa\n\nbb\n\ncc", 1, 2), ElementsAre("aa", "bb"));
  EXPECT_THAT(text_pieces("aa\n\nbb\n\ncc", 5, 1), ElementsAre("aa\n\nbb"));
}

TEST(TextPieces, WhiteSpaceAroundParagraphsIsLeftOut) {
  EXPECT_THAT(text_pieces("\n\n\n  aa \n\n\n\n\t\n\nbb\n", 1, 9), ElementsAre("aa", "bb"));
  EXPECT_THAT(text_pieces("aa\r\n\r\nbb\r\n", 1, 9), ElementsAre("aa", "bb"));
}

// A reader that searched the rest of the text for each paragraph would take minutes.
TEST(TextPieces, TakeATimeThatGrowsAsTheTextDoes) {
  const std::size_t count = 3'000'000;
  EXPECT_THAT(text_pieces(std::string(count, '\n') + "a", 1, 9), ElementsAre("a"));
  std::string lines;
  for (std::size_t i = 0; i < count; i += 3) lines += "a\n\n";
  EXPECT_EQ(text_pieces(lines, 1, 2'000'000).size(), count / 3);
}

TEST(TextPieces, OfNothing) {
  EXPECT_THAT(text_pieces("", 1, 9), IsEmpty());
  EXPECT_THAT(text_pieces(" \n\n \n", 1, 9), IsEmpty());
}

}  // namespace
}  // namespace heed::cli
