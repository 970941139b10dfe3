#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/viz/layout.h"
#include "support/command.h"
#include "support/places.h"

namespace heed { namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::Environment;
using testing_support::run_command;
using testing_support::run_in_terminal;

const Environment kTrueColor{{"TERM", "xterm-256color"}, {"COLORTERM", "truecolor"}};

TEST(Demo, ShowsTokensVectorsHeadsAndTheWayOn) {
  const auto result = run_command({"demo"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"The  cat  sat  on   the  mat\n256  257  258  259  260  261\n",
        "Head 0                        Head 1\n",
        "cat .25 .75  ·   ·   ·   ·    cat .63 .37  ·   ·   ·   ·\n", "Head 3", "Row sat of",
        "Each row\nadds up to 1.", "heed explain \"", "heed lesson"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST(Demo, IsTheSameEveryTime) { EXPECT_EQ(run_command({"demo"}).out, run_command({"demo"}).out); }

TEST(Demo, TheDocumentationShowsIt) {
  EXPECT_THAT(testing_support::read_text(testing_support::source_folder() + "/docs/command.md"),
              HasSubstr("$ heed demo\n" + run_command({"demo"}).out + "```\n"));
}

TEST(Demo, TakesNoArguments) { EXPECT_EQ(run_command({"demo", "x"}).exit_code, 2); }

TEST(Demo, WritesNoColourIntoAFile) {
  EXPECT_THAT(run_command({"demo"}, kTrueColor).out, Not(HasSubstr("\x1b")));
}

TEST(Demo, ColoursATerminalAsDeeplyAsItCan) {
  EXPECT_THAT(run_in_terminal({"demo"}, kTrueColor).out, HasSubstr("\x1b[48;2;"));
  EXPECT_THAT(run_in_terminal({"demo"}, {{"TERM", "xterm-256color"}}).out,
              AllOf(HasSubstr("\x1b[48;5;"), Not(HasSubstr("\x1b[48;2;"))));
  EXPECT_THAT(run_in_terminal({"demo"}, {{"TERM", "dumb"}}).out, Not(HasSubstr("\x1b")));
}

TEST(Demo, RespectsNoColor) {
  Environment environment = kTrueColor;
  environment["NO_COLOR"] = "1";
  EXPECT_THAT(run_in_terminal({"demo"}, environment).out, Not(HasSubstr("\x1b")));
}

TEST(Demo, ArrangesHeadsByTheWidthOfTheTerminal) {
  EXPECT_THAT(run_in_terminal({"demo"}, kTrueColor, 130).out,
              testing::ContainsRegex("Head 0 +Head 1 +Head 2 +Head 3"));
  EXPECT_THAT(run_in_terminal({"demo"}, kTrueColor, 30).out, HasSubstr("Head 0\r\n"));
}

TEST(Demo, KeepsToAsciiWhereTheTerminalDoes) {
  const auto result = run_command({"demo"}, {{"LANG", "de_DE.ISO-8859-1"}});
  EXPECT_THAT(result.out, HasSubstr("cat .25 .75  x "));
  for (const char character : result.out) EXPECT_GE(character, 0);
}

}  // namespace
}  // namespace heed
