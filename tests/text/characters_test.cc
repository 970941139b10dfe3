#include "heed/text/characters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "bench/heap.h"
#include "heed/error.h"

namespace heed::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Characters, AreNumberedInTheOrderOfUnicode) {
  const Characters characters("bé猫ab");
  EXPECT_EQ(characters.all(), "abé猫");
  EXPECT_THAT(characters.encode("猫éba"), ElementsAre(3, 2, 1, 0));
  EXPECT_EQ(characters[2], "é");
  EXPECT_THAT([&] { characters.encode("x"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the character 'x' did not occur")));
  EXPECT_THAT([] { Characters("ab\xff"); },
              ThrowsMessage<InvalidArgument>("the text is not valid UTF-8 at byte 2"));
}

TEST(Characters, TakeFourBytesEach) {
  std::string text;
  while (text.size() < 1'000'000) text += "the cat sat on the mat ";
  cli::reset_heap_peak();
  const std::int64_t before = cli::live_heap_bytes();
  const auto ids = Characters(text).encode(text);
  const auto bytes = static_cast<std::int64_t>(4 * text.size());
  EXPECT_LT(cli::live_heap_bytes() - before, bytes + 8192);
  EXPECT_LT(cli::peak_heap_bytes() - before, bytes + 8192);
}

}  // namespace
}  // namespace heed::text
