#include "text/decoders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace heed::text { namespace {

using testing::ElementsAre;

// Marks the boundaries of the parts, which would otherwise be joined.
class Brackets final : public DecodeStep {
 public:
  void write(std::string_view bytes) override { part_ += bytes; }
  void end_part() override {
    next().write("[" + part_ + "]");
    part_.clear();
    next().end_part();
  }

 private:
  std::string part_;
};

std::string decoded(const Decoder& decoder, const std::vector<std::string>& tokens) {
  Decoding decoding(decoder);
  for (const std::string& token : tokens) decoding.add(token);
  decoding.finish();
  return decoding.take();
}

// Returns the parts after decoding.
std::string parts(const Decoder& decoder, const std::vector<std::string>& tokens) {
  return decoded(decoders_of({decoder, {[] { return std::make_unique<Brackets>(); }}}), tokens);
}

TEST(Decoders, WordPiece) {
  EXPECT_EQ(parts(word_piece_decoder("##", false), {"##a", "##b", "c", "##d", ".", "#"}),
            "[##a][b][ c][d][ .][ #]");
  EXPECT_EQ(parts(word_piece_decoder("##", true), {"a", ".", "n't", "'s", "do not"}),
            "[a][.][n't]['s][ don't]");
}

TEST(Decoders, Bytes) {
  EXPECT_EQ(parts(byte_level_decoder(), {"Ġa", "\u00C3", "\u00A9", "a b"}), "[ a\u00E9a b]");
  EXPECT_EQ(parts(byte_fallback_decoder(),
                  {"<0xC3>", "<0xA9>", "x", "<0xFF>", "<0x4>", "<0xZZ>", "<0xE7>", "<0x41>"}),
            "[\u00E9][x][\uFFFD][<0x4>][<0xZZ>][\uFFFD][\uFFFD]");
}

TEST(Decoders, SimpleOnes) {
  EXPECT_EQ(parts(replacing_decoder("_", " "), {"_a__", "b"}), "[ a  ][b]");
  EXPECT_EQ(parts(replacing_decoder("aab", "-"), {"aaab", "aa", "b", "aabaab", "aaxaab"}),
            "[a-][aa][b][--][aax-]");
  EXPECT_EQ(parts(fusing_decoder(), {"a", "b"}), "[ab]");
  EXPECT_EQ(parts(fusing_decoder(), {}), "[]");
  EXPECT_EQ(parts(stripping_decoder({" ", 1, 3}), {"  a  ", " ", "", "b     ", " c d "}),
            "[ a][][][b  ][c d]");
  EXPECT_EQ(parts(stripping_decoder({"▁", 1, 1}), {"▁▁a▁", "▁", "\xE2\x96", "a▁b"}),
            "[▁a][][\xE2\x96][a▁b]");
  EXPECT_EQ(parts(spacing_decoder(), {"a", "", "b"}), "[a][ ][ b]");
  EXPECT_EQ(decoded({}, {"a", "b"}), "ab");
}

// After fusing, each step sees pieces of one part.
TEST(Decoders, AfterFusing) {
  const auto fused = [](const Decoder& decoder) {
    return decoders_of({fusing_decoder(), decoder});
  };
  EXPECT_EQ(parts(fused(replacing_decoder("ab", "-")), {"xa", "bab", "a"}), "[x--a]");
  EXPECT_EQ(parts(fused(stripping_decoder({" ", 2, 2})), {" ", " a ", " ", " "}), "[a ]");
  EXPECT_EQ(parts(fused(word_piece_decoder("##", true)), {"#", "#a ", ".", " do", " not"}),
            "[##a. don't]");
  EXPECT_EQ(parts(fused(byte_fallback_decoder()), {"<0x", "41>"}), "[A]");
  EXPECT_EQ(parts(fused(byte_level_decoder()), {"Ġ", "a"}), "[ a]");
}

// Text that no later token can change is returned at once.
TEST(Decoders, HandOnWhatIsCertain) {
  const std::vector<Decoder> steps{replacing_decoder("▁", " "), byte_fallback_decoder(),
                                   fusing_decoder(), stripping_decoder({" ", 1, 0})};
  Decoding decoding(decoders_of(steps));
  std::vector<std::string> known;
  for (const char* token : {"▁Hi", "▁", "▁you", "<0xE7>", "<0x8C>", "<0xAB>", "▁", "<0xE7>"}) {
    decoding.add(token);
    known.push_back(decoding.take());
  }
  EXPECT_THAT(known, ElementsAre("Hi", " ", " you", "", "", "", "猫 ", ""));
  decoding.finish();
  EXPECT_EQ(decoding.take(), "\uFFFD");
}

}  // namespace
}  // namespace heed::text
