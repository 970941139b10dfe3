#include "text/decoders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed::text {
namespace {

using testing::ElementsAre;

TEST(Decoders, WordPiece) {
  EXPECT_THAT(decode_word_piece({"##a", "##b", "c", "##d", "."}, "##", false),
              ElementsAre("##a", "b", " c", "d", " ."));
  EXPECT_THAT(decode_word_piece({"a", ".", "n't", "'s"}, "##", true),
              ElementsAre("a", ".", "n't", "'s"));
}

TEST(Decoders, Bytes) {
  EXPECT_THAT(decode_byte_level({"Ġa", "\u00C3", "\u00A9", "a b"}), ElementsAre(" a\u00E9a b"));
  EXPECT_THAT(decode_byte_fallback({"<0xC3>", "<0xA9>", "x", "<0xFF>", "<0x4>", "<0xZZ>"}),
              ElementsAre("\u00E9", "x", "\uFFFD", "<0x4>", "<0xZZ>"));
}

TEST(Decoders, SimpleOnes) {
  EXPECT_THAT(decode_replaced({"_a__", "b"}, "_", " "), ElementsAre(" a  ", "b"));
  EXPECT_THAT(decode_fused({"a", "b"}), ElementsAre("ab"));
  EXPECT_THAT(decode_fused({}), ElementsAre(""));
  EXPECT_THAT(decode_stripped({"  a  ", " "}, {" ", 1, 3}), ElementsAre(" a", ""));
  EXPECT_THAT(decode_spaced({"a", "b"}), ElementsAre("a", " b"));
}

}  // namespace
}  // namespace heed::text
