#include "heed/viz/layout.h"

#include <gtest/gtest.h>

#include <vector>

namespace heed { namespace {

TEST(TerminalColumns, CountsWhatATerminalShows) {
  EXPECT_EQ(terminal_columns(""), 0);
  EXPECT_EQ(terminal_columns("naïve"), 5);
  EXPECT_EQ(terminal_columns("猫が"), 4);
}

TEST(TerminalColumns, ColoursTakeNone) {
  EXPECT_EQ(terminal_columns("\x1b[38;5;16;48;5;45m 0.5 \x1b[0m"), 5);
  EXPECT_EQ(terminal_columns("a\x1b[1mb\x1b["), 2);
}

TEST(WrapText, BreaksBetweenWords) {
  EXPECT_EQ(wrap_text("one two three four five six", 20), "one two three four\nfive six\n");
}

TEST(WrapText, NeverBelowTwentyColumns) {
  EXPECT_EQ(wrap_text("one two three four", 3), "one two three four\n");
}

TEST(SideBySide, PadsToTheWidestLineOfEachBlock) {
  const std::vector<std::string> blocks{"a\nbbb\n", "x\ny\n"};
  EXPECT_EQ(side_by_side(blocks, 2), "a    x\nbbb  y\n");
}

TEST(SideBySide, BlocksMayDifferInHeight) {
  const std::vector<std::string> blocks{"a\n", "x\ny\n", "1\n2\n3\n"};
  EXPECT_EQ(side_by_side(blocks, 1), "a x 1\n  y 2\n    3\n");
}

TEST(SideBySide, WideCharactersAndColoursStayAligned) {
  const std::vector<std::string> blocks{"猫\n\x1b[7mab\x1b[0m\n", "|\n|\n"};
  EXPECT_EQ(side_by_side(blocks, 1), "猫 |\n\x1b[7mab\x1b[0m |\n");
}

TEST(SideBySide, NothingIsNothing) { EXPECT_EQ(side_by_side({}), ""); }

}  // namespace
}  // namespace heed
