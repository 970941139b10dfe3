#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "heed/core/error.h"
#include "heed/nn/search.h"
#include "heed/nn/special_tokens.h"
#include "heed/train/translator.h"

namespace heed::train { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// Returns an untrained translator that reverses letters.
Translator reversal() {
  TranslationSettings settings;
  settings.corpus = {.task = "reverse", .max_length = 4, .examples = 50, .held_out = 5};
  settings.model = {.attention = "multihead", .d_model = 8, .heads = 2, .dropout = 0};
  return new_translator(settings, make_corpus(settings.corpus));
}

TEST(Translation, IsWhatABeamSearchFinds) {
  Translator translator = reversal();
  const std::string word = translator.source.token(4);
  const std::string sentence = " " + word + "  zebra ";
  const Translation found = translate(translator, sentence, 2);
  EXPECT_THAT(found.source, ElementsAre(word, "zebra"));
  EXPECT_THAT(found.unknown, ElementsAre("zebra"));
  const Tensor<std::int64_t> src({2}, {4, kUnknownId});
  const auto expected = nn::beam_search(*translator.model, src,
                                        {.beam = 2, .max_len = translator.settings.model.max_len})
                            .front();
  EXPECT_EQ(found.hypothesis.tokens, expected.tokens);
  EXPECT_EQ(found.hypothesis.log_probability, expected.log_probability);
  EXPECT_EQ(found.target, translator.target.tokens(expected.tokens));
  EXPECT_EQ(found.text, translator.target.decode(expected.tokens));
}

TEST(Translation, OfNothingThereIsNothing) {
  Translator translator = reversal();
  const Translation found = translate(translator, " \n");
  EXPECT_THAT(found.source, IsEmpty());
  EXPECT_THAT(found.target, IsEmpty());
  EXPECT_EQ(found.text, "");
}

TEST(Translation, RefusesMisuse) {
  Translator translator = reversal();
  EXPECT_THAT([&] { static_cast<void>(translate(translator, "a\xFF")); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not valid UTF-8 at byte 1")));
  EXPECT_THROW(static_cast<void>(translate(translator, "a", 0)), InvalidArgument);
}

}  // namespace
}  // namespace heed::train
