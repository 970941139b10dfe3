// Losses over texts: the same characters at every length, and the held-out part.
#include "heed/train/text_loss.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"

namespace heed::train { namespace {

using testing_support::Refuses;

// For a model without memory the loss of a character does not depend on earlier ones: all lengths
// have the same loss only if the same characters are predicted.
TEST(LossOfBlocks, PredictsTheSameCharactersAtEveryLength) {
  std::vector<std::int32_t> text(100);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int32_t>(i * i % 7);
  models::CausalTransformer model({.vocab_size = 7,
                                   .context = 8,
                                   .layers = 1,
                                   .d_model = 8,
                                   .heads = 2,
                                   .positions = "none",
                                   .mask = "sliding_window(0, 0)"});
  const MeasuredBlocks blocks{32, 4};
  EXPECT_EQ(blocks.count(text), 17);
  const double shortest = loss_of_blocks(model, text, blocks, 4).value();
  for (const std::int64_t length : {5, 8, 32}) {
    EXPECT_NEAR(loss_of_blocks(model, text, blocks, length).value(), shortest, 1e-6);
  }
  double sum = 0;  // each character from 29 to 96 alone
  for (std::size_t i = 28; i < 96; ++i) {
    sum += loss_over(model, Ids(text).subspan(i, 2), 1).value().mean;
  }
  EXPECT_NEAR(sum / 68, shortest, 1e-5);
}

TEST(LossOfBlocks, EndsWherePositionsDo) {
  const std::vector<std::int32_t> text(100, 1);
  models::CausalTransformer model({.vocab_size = 7,
                                   .context = 8,
                                   .layers = 1,
                                   .d_model = 8,
                                   .heads = 2,
                                   .positions = "learned"});
  EXPECT_TRUE(loss_of_blocks(model, text, {32, 4}, 8));
  EXPECT_FALSE(loss_of_blocks(model, text, {32, 4}, 9));
  EXPECT_TRUE(loss_of_blocks(model, Ids(text).first(33), {32, 4}, 8));
  EXPECT_THAT(
      [&] {
        loss_of_blocks(model, Ids(text).first(32), {32, 4}, 8);
      },
      Refuses("text", "32"));
}

TEST(HeldOutText, KeepsTheEndOfTheText) {
  const HeldOutText text("abcabcabcabcabcabcabcabcab");  // 26 characters
  EXPECT_EQ(text.learned().size(), 24U);
  EXPECT_THAT(text.held_out(), testing::ElementsAre(0, 1));
  EXPECT_EQ(HeldOutText("abcd", 4).held_out().size(), 1U);
  EXPECT_EQ(HeldOutText("abc", 4).held_out().size(), 0U);
}

// Uses the numbers of a given vocabulary for any text.
TEST(HeldOutText, TakesTheNumbersOfAVocabulary) {
  const HeldOutText text(text::Characters("abcd"), "dada");
  EXPECT_THAT(text.ids, testing::ElementsAre(3, 0, 3, 0));
  EXPECT_EQ(text.characters.size(), 4);
  EXPECT_THAT([] { HeldOutText(text::Characters("ab"), "abc"); },
              testing::ThrowsMessage<InvalidArgument>(
                  testing::HasSubstr("the character 'c' did not occur")));
}

}  // namespace
}  // namespace heed::train
