#include "markdown_text.h"

#include <gtest/gtest.h>

namespace heed::cli { namespace {

TEST(MarkdownText, OnATerminalTablesAreAlignedAndTitlesUnderlined) {
  EXPECT_EQ(without_markup("# Masks compared\n\nTwo.\n\n| mask | visible, % |\n|---|--:|\n"
                           "| full | 100 |\n| fenêtre | – |\n\n## More\n"),
            "Masks compared\n--------------\n\nTwo.\n\n"
            "mask     visible, %\n"
            "full            100\n"
            "fenêtre           –\n\nMore\n----\n");
  EXPECT_EQ(without_markup(""), "");
  EXPECT_EQ(without_markup("|a|b|"), "a  b\n");
  EXPECT_EQ(without_markup("|"), "");
}

}  // namespace
}  // namespace heed::cli
