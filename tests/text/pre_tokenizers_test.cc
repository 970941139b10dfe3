#include "text/pre_tokenizers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "text/code_points.h"

namespace heed::text { namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> pieces_of(std::string_view text, const PreTokenizer& splits) {
  PreTokenized pieces{AlignedText(text, 0), {{0, text.size()}}};
  splits(pieces);
  std::vector<std::string> result;
  for (const auto& [begin, end] : pieces.pieces) {
    result.emplace_back(pieces.text.bytes().substr(begin, end - begin));
  }
  return result;
}

// The example in the documentation of the library that defines these behaviours.
std::vector<std::string> countdown(SplitBehavior behavior, bool inverts = false) {
  return pieces_of("the-final--countdown", [&](PreTokenized& text) {
    split_literal(text, {"-", behavior, inverts});
  });
}

TEST(PreTokenizers, EveryBehaviorOfMatches) {
  using enum SplitBehavior;
  EXPECT_THAT(countdown(kRemoved), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(countdown(kIsolated), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(countdown(kMergedWithPrevious), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(countdown(kMergedWithNext), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(countdown(kContiguous), ElementsAre("the", "-", "final", "--", "countdown"));
  EXPECT_THAT(countdown(kRemoved, true), ElementsAre("-", "-", "-"));
}

TEST(PreTokenizers, Words) {
  EXPECT_THAT(pieces_of(" don't a_b!? \u00E9\u24B6 ", split_words),
              ElementsAre("don", "'", "t", "a_b", "!?", "\u00E9\u24B6"));
  EXPECT_THAT(pieces_of("don't  stop!?", split_bert),
              ElementsAre("don", "'", "t", "stop", "!", "?"));
  EXPECT_THAT(pieces_of(" \t", split_bert), IsEmpty());
}

TEST(PreTokenizers, ByteLevelWritesBytesAsCharacters) {
  const auto splits = [](bool adds_space, bool cuts) {
    return [=](PreTokenized& text) { split_byte_level(text, {adds_space, cuts}); };
  };
  EXPECT_THAT(pieces_of("a \u00E9", splits(false, true)), ElementsAre("a", "Ġ\u00C3\u00A9"));
  EXPECT_THAT(pieces_of("a b", splits(true, true)), ElementsAre("Ġa", "Ġb"));
  EXPECT_THAT(pieces_of(" a", splits(true, false)), ElementsAre("Ġa"));
}

TEST(PreTokenizers, ASpaceThatIsAddedStandsForNothing) {
  PreTokenized text{AlignedText("ab", 5), {{0, 2}}};
  split_byte_level(text, {true, true});
  EXPECT_EQ(text.text.bytes(), "Ġab");
  EXPECT_EQ(text.text.origin(0), (TextRange{5, 5}));
  EXPECT_EQ(text.text.origin(0, text.text.size()), (TextRange{5, 7}));
}

}  // namespace
}  // namespace heed::text
