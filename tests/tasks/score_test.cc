#include "heed/tasks/score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "heed/core/error.h"
#include "heed/tasks/vocabulary.h"

namespace heed::tasks { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;
using Texts = std::vector<Tokens>;

Tokens words(const char* text) { return split_units(text, Units::kWords); }

TEST(Bleu, CountsEachNgramAtMostAsOftenAsTheReference) {
  const Texts hypotheses{words("the the the the the the the")};
  const Texts references{words("the cat is on the mat")};
  const Bleu bleu = corpus_bleu(hypotheses, references, {.smooths = false});
  EXPECT_DOUBLE_EQ(bleu.precisions[0], 100.0 * 2 / 7);
  EXPECT_EQ(bleu.precisions[1], 0);
  EXPECT_EQ(bleu.score, 0);
}

TEST(Bleu, PunishesShortHypotheses) {
  const Texts hypotheses{words("a b c d")};
  const Texts references{words("a b c d e f g")};
  const Bleu bleu = corpus_bleu(hypotheses, references);
  EXPECT_DOUBLE_EQ(bleu.brevity_penalty, std::exp(1 - 7.0 / 4));
  EXPECT_DOUBLE_EQ(bleu.score, 100 * bleu.brevity_penalty);
}

TEST(Bleu, IsOfTheCorpusNotTheMeanOfItsTexts) {
  const Texts hypotheses{words("a b c d"), words("x y z u")};
  const Texts references{words("a b c d"), words("p q r s")};
  EXPECT_DOUBLE_EQ(corpus_bleu(hypotheses, references).score, 50);
}

TEST(Bleu, OfShortTextsNeedsTheEffectiveOrder) {
  const Texts texts{words("a b")};
  EXPECT_EQ(corpus_bleu(texts, texts).score, 0);
  EXPECT_DOUBLE_EQ(corpus_bleu(texts, texts, {.effective_order = true}).score, 100);
}

TEST(Bleu, OfNothingIsZero) {
  EXPECT_EQ(corpus_bleu({}, {}).score, 0);
  EXPECT_EQ(corpus_bleu(Texts{{}}, Texts{words("a")}).score, 0);
  EXPECT_EQ(corpus_bleu(Texts{words("a")}, Texts{{}}).score, 0);
}

TEST(TranslationScore, GroupsByLength) {
  const Texts references{words("a b c d e"), words("a"), words("b c"), words("")};
  Texts hypotheses = references;
  hypotheses[1] = words("b");
  const std::vector<std::int64_t> lengths{6, 1, 5, 0};
  const TranslationScore score = score_translations(lengths, hypotheses, references, 5);
  EXPECT_DOUBLE_EQ(score.exact, 0.75);
  ASSERT_EQ(score.by_length.size(), 2);
  EXPECT_EQ(score.by_length[0].min_length, 1);
  EXPECT_EQ(score.by_length[0].max_length, 5);
  EXPECT_EQ(score.by_length[0].count, 3);
  EXPECT_DOUBLE_EQ(score.by_length[0].exact, 2.0 / 3);
  EXPECT_EQ(score.by_length[1].min_length, 6);
  EXPECT_EQ(score.by_length[1].count, 1);
  EXPECT_DOUBLE_EQ(score.by_length[1].bleu, 100);
}

TEST(TranslationScore, RefusesWhatDoesNotFit) {
  const Texts one{words("a")};
  const std::vector<std::int64_t> length{1};
  EXPECT_THAT([&] { corpus_bleu(one, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("there are 1 hypotheses but 0 references")));
  EXPECT_THROW(exact_match({}, one), InvalidArgument);
  EXPECT_THAT([&] { score_translations({}, one, one); },
              ThrowsMessage<InvalidArgument>(HasSubstr("0 source_lengths for 1 hypotheses")));
  EXPECT_THROW(score_translations(length, one, one, 0), InvalidArgument);
  EXPECT_EQ(exact_match({}, {}), 0);
}

}  // namespace
}  // namespace heed::tasks
