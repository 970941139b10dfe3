#include "heed/text/characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "heed/core/error.h"
#include "support/heap.h"
#include "support/refusal.h"

namespace heed::text { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;

TEST(Characters, AreNumberedInTheOrderOfUnicode) {
  const Characters characters("bé猫ab");
  EXPECT_EQ(characters.all(), "abé猫");
  EXPECT_THAT(characters.ids("猫éba"), ElementsAre(3, 2, 1, 0));
  EXPECT_EQ(characters[2], "é");
  EXPECT_THAT([&] { characters.encode("x"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the character 'x' did not occur")));
  EXPECT_THAT(
      [] { Characters("ab\xff"); },
      ThrowsMessage<InvalidArgument>("Characters: the text is not valid UTF-8 at byte 2, 0xFF"));
}

TEST(Characters, AreATokenizer) {
  const Characters characters("bé猫a\n");
  const Tokenizer& tokenizer = characters;
  EXPECT_EQ(tokenizer.vocab_size(), 5);
  const Encoding encoding = tokenizer.encode("é猫");
  EXPECT_THAT(encoding.ids, ElementsAre(3, 4));
  EXPECT_THAT(encoding.ranges, ElementsAre(TextRange{0, 2}, TextRange{2, 5}));
  EXPECT_THAT(encoding.type_ids, ElementsAre(0, 0));
  EXPECT_EQ(tokenizer.decode(encoding.ids), "é猫");
  EXPECT_THAT(characters.short_ids("é猫"), ElementsAre(3, 4));
  EXPECT_EQ(tokenizer.token(0), "\n");
  EXPECT_EQ(tokenizer.label(0), "\\n");
  EXPECT_EQ(tokenizer.id("猫"), 4);
  EXPECT_EQ(tokenizer.id("x"), std::nullopt);
  EXPECT_FALSE(tokenizer.is_special(0));
  EXPECT_THAT([&] { static_cast<void>(tokenizer.token(5)); }, Refuses("id", "5"));
  EXPECT_THAT(
      [&] {
        static_cast<void>(tokenizer.decode(std::vector<std::int64_t>{0, -1}));
      },
      Refuses("id", "-1"));
}

TEST(Characters, TakeFourBytesEach) {
  std::string text;
  while (text.size() < 1'000'000) text += "the cat sat on the mat ";
  testing_support::reset_heap_peak();
  const std::int64_t before = testing_support::live_heap_bytes();
  const auto ids = Characters(text).short_ids(text);
  const auto bytes = static_cast<std::int64_t>(4 * text.size());
  EXPECT_LT(testing_support::live_heap_bytes() - before, bytes + 8192);
  EXPECT_LT(testing_support::peak_heap_bytes() - before, bytes + 8192);
}

}  // namespace
}  // namespace heed::text
