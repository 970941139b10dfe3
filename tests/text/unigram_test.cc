#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "text/made_tokenizers.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;
using testing_support::Message;
using testing_support::parts_of;
using testing_support::tokenizer_of;
using testing_support::tokens_of;
using testing_support::unigram_json;

std::string with(std::string json, const std::string& part, const std::string& by) {
  const std::size_t found = json.find(part);
  EXPECT_NE(found, std::string::npos) << part;
  return json.replace(found, part.size(), by);
}

void expect_unigram_refused(const std::string& json, const Message& problem) {
  EXPECT_THAT([&] { tokenizer_of(json); }, ThrowsMessage<FormatError>(problem));
}

TEST(Unigram, TakesTheTokensOfTheGreatestSum) {
  const auto tokenizer = tokenizer_of(unigram_json());
  EXPECT_THAT(tokens_of(*tokenizer, "the cats"), ElementsAre("▁the", "▁cat", "s", "</s>"));
  // "▁t" and "hes" have -7 together, "▁the" and "s" -5.
  EXPECT_THAT(tokens_of(*tokenizer, "thes"), ElementsAre("▁the", "s", "</s>"));
  EXPECT_THAT(tokens_of(*tokenizer, "hes"), ElementsAre("▁", "hes", "</s>"));
}

TEST(Unigram, NeighboursThatAreUnknownAreOneToken) {
  const auto tokenizer = tokenizer_of(unigram_json());
  EXPECT_THAT(tokens_of(*tokenizer, "the 猫é s"),
              ElementsAre("▁the", "▁", "<unk>", "▁", "s", "</s>"));
  EXPECT_THAT(parts_of(*tokenizer, "the 猫é s"), ElementsAre("the", " ", "猫é", " ", "s", ""));
}

TEST(Unigram, TextsThatMayNotHaveSpecialTokensHaveNone) {
  const auto tokenizer = tokenizer_of(unigram_json());
  EXPECT_THAT(tokens_of(*tokenizer, "</s>", {false, true}), ElementsAre("</s>"));
  EXPECT_THAT(tokens_of(*tokenizer, "</s>", {false, false}),
              ElementsAre("▁", "<unk>", "s", "<unk>"));
}

TEST(Unigram, ComesBackWithItsSpaces) {
  const auto tokenizer = tokenizer_of(unigram_json());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("the cat s").ids), "the cat s");
}

TEST(Unigram, BrokenModelsAreNamed) {
  const std::string json = unigram_json();
  expect_unigram_refused(with(json, R"("unk_id": 0)", R"("unk_id": 99)"),
                         {"model.unk_id", "is 99"});
  expect_unigram_refused(with(json, R"("unk_id": 0)", R"("unk_id": -1)"),
                         {"model.unk_id", "is -1"});
  expect_unigram_refused(with(json, R"("unk_id": 0,)", ""), {"unk_id"});
  expect_unigram_refused(with(json, R"(["s", -3])", R"(["s"])"), {"not a token and its score"});
  expect_unigram_refused(with(json, R"(["s", -3])", R"(["s", "x"])"),
                         {"not a token and its score"});
  expect_unigram_refused(with(json, R"(["s", -3])", R"(["s", -1e40])"), {"has the score -1e+40"});
  expect_unigram_refused(with(json, R"(["s", -3])", R"(["", -3])"), {"a token of 0 bytes"});
  expect_unigram_refused(with(json, R"("s", -3)", "\"" + std::string(1025, 's') + "\", -3"),
                         {"a token of 1025 bytes"});
  expect_unigram_refused(with(json, R"("s", -3)", R"("hes", -3)"), {"'hes' has two ids"});
}

TEST(Unigram, BrokenMapsAreNamed) {
  const auto mapped = [](const std::string& map) {
    return unigram_json(R"(, "normalizer": {"type": "Precompiled", "precompiled_charsmap": ")" +
                        map + "\"}");
  };
  expect_unigram_refused(mapped("?"), {"normalizer.precompiled_charsmap", "is not Base64"});
  expect_unigram_refused(mapped("AAAA"), {"normalizer.precompiled_charsmap", "has 3 bytes"});
}

TEST(WordLevel, EachPieceIsATokenOrUnknown) {
  const auto tokenizer = tokenizer_of(R"({"pre_tokenizer": {"type": "WhitespaceSplit"},
      "model": {"type": "WordLevel", "unk_token": "?", "vocab": {"?": 0, "cat": 1, "the": 2}}})");
  EXPECT_THAT(tokens_of(*tokenizer, "the cats cat"), ElementsAre("the", "?", "cat"));
  EXPECT_EQ(tokenizer->special_tokens().unknown, 0);
}

}  // namespace
}  // namespace heed
