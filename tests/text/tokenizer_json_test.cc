#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "text/made_tokenizers.h"

namespace heed { namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;
using testing_support::bert_json;
using testing_support::byte_level_json;
using testing_support::parts_of;
using testing_support::tokenizer_of;
using testing_support::tokens_of;
using Ids = std::vector<std::int64_t>;

void expect_json_refused(const std::string& json, const std::string& problem) {
  EXPECT_THAT([&] { tokenizer_of(json); },
              ThrowsMessage<FormatError>(AllOf(HasSubstr("t.json: at byte "), HasSubstr(problem))))
      << json.substr(0, 300);
}

std::string replaced(std::string json, const std::string& part, const std::string& by) {
  const std::size_t found = json.find(part);
  EXPECT_NE(found, std::string::npos) << part;
  return json.replace(found, part.size(), by);
}

TEST(WordPieceTokenizer, TakesTheLongestTokensOfEachWord) {
  const auto tokenizer = tokenizer_of(bert_json());
  EXPECT_THAT(tokens_of(*tokenizer, "The unaffable CATS."),
              ElementsAre("[CLS]", "the", "un", "##aff", "##able", "cat", "##s", ".", "[SEP]"));
  EXPECT_THAT(tokens_of(*tokenizer, "cat dog", {false, true}), ElementsAre("cat", "[UNK]"));
  EXPECT_THAT(tokens_of(*tokenizer, "##s"),
              ElementsAre("[CLS]", "[UNK]", "[UNK]", "[UNK]", "[SEP]"));
  EXPECT_THAT(tokens_of(*tokenizer, ""), ElementsAre("[CLS]", "[SEP]"));
  EXPECT_EQ(tokenizer->vocab_size(), 18);
}

TEST(WordPieceTokenizer, WordsLongerThanItsLimitAreUnknown) {
  const auto tokenizer = tokenizer_of(
      replaced(bert_json(), R"("unk_token")", R"("max_input_chars_per_word": 4, "unk_token")"));
  EXPECT_THAT(tokens_of(*tokenizer, "cats catss", {false, true}),
              ElementsAre("cat", "##s", "[UNK]"));
}

TEST(WordPieceTokenizer, RangesAreBytesOfTheTextAsItWas) {
  const auto tokenizer = tokenizer_of(bert_json());
  // Removes accents, precomposed or not, and control characters; 猫 is its own word.
  EXPECT_THAT(parts_of(*tokenizer, "NA\u00CFVE nai\u0308ve"),
              ElementsAre("", "NA\u00CFVE", "nai\u0308ve", ""));
  EXPECT_THAT(parts_of(*tokenizer, "the猫cat\u200Bs"),
              ElementsAre("", "the", "猫", "cat", "s", ""));
  EXPECT_THAT(tokens_of(*tokenizer, "the猫cat\u200Bs"),
              ElementsAre("[CLS]", "the", "猫", "cat", "##s", "[SEP]"));
}

TEST(WordPieceTokenizer, SpecialTokensOfATextAreFoundUnlessTheyMayNotBe) {
  const auto tokenizer = tokenizer_of(bert_json());
  EXPECT_THAT(tokens_of(*tokenizer, "the  [MASK] cat", {false, true}),
              ElementsAre("the", "[MASK]", "cat"));
  EXPECT_THAT(parts_of(*tokenizer, "the  [MASK] cat"),
              ElementsAre("", "the", "  [MASK]", "cat", ""));
  EXPECT_THAT(tokens_of(*tokenizer, "[MASK]", {false, false}),
              ElementsAre("[UNK]", "[UNK]", "[UNK]"));
}

TEST(WordPieceTokenizer, PairsHaveTypes) {
  const auto tokenizer = tokenizer_of(bert_json());
  const auto encoding = tokenizer->encode_pair("the", "cat s");
  EXPECT_THAT(encoding.ids, ElementsAre(2, 5, 3, 9, 1, 3));
  EXPECT_THAT(encoding.type_ids, ElementsAre(0, 0, 0, 1, 1, 1));
  EXPECT_EQ(encoding.ranges[4], (text::TextRange{4, 5}));
  EXPECT_THAT(tokenizer->encode_pair("the", "cat", {false, true}).ids, ElementsAre(5, 9));
}

TEST(WordPieceTokenizer, DecodesWithoutTheSpacesThatEnglishDoesNotHave) {
  const auto tokenizer = tokenizer_of(bert_json());
  EXPECT_EQ(tokenizer->decode(Ids{2, 6, 7, 8, 9, 10, 12, 3}), "unaffable cats.");
  EXPECT_EQ(tokenizer->decode(Ids{2, 9, 3}, {false}), "[CLS] cat [SEP]");
  EXPECT_EQ(tokenizer->label(7), "aff");
  EXPECT_EQ(tokenizer->label(2), "[CLS]");
}

TEST(WordPieceTokenizer, KnowsTheRolesOfItsTokens) {
  const auto tokenizer = tokenizer_of(bert_json());
  const text::SpecialTokens& roles = tokenizer->special_tokens();
  EXPECT_EQ(roles.begin, 2);
  EXPECT_EQ(roles.end, 3);
  EXPECT_EQ(roles.separator, 3);
  EXPECT_EQ(roles.padding, 0);
  EXPECT_EQ(roles.unknown, 1);
  EXPECT_EQ(roles.mask, 4);
}

TEST(ByteLevelTokenizer, MergesInTheOrderOfItsMerges) {
  const auto tokenizer = tokenizer_of(byte_level_json());
  EXPECT_THAT(tokens_of(*tokenizer, "the thing the"), ElementsAre("the", "Ġ", "th", "ing", "Ġthe"));
  EXPECT_THAT(tokens_of(*tokenizer, "in!"), ElementsAre("in", "!"));
  EXPECT_THAT(tokens_of(*tokenizer, " x"), ElementsAre("Ġ", "x"));
  EXPECT_THAT(tokens_of(*tokenizer, ""), IsEmpty());
}

TEST(ByteLevelTokenizer, RangesAreSingleBytesWhereTokensAre) {
  const auto tokenizer = tokenizer_of(byte_level_json());
  EXPECT_THAT(parts_of(*tokenizer, "in\u00E9 the"), ElementsAre("in", "\xC3", "\xA9", " the"));
  EXPECT_THAT(parts_of(*tokenizer, "the<|end|>the"), ElementsAre("the", "<|end|>", "the"));
}

TEST(ByteLevelTokenizer, DecodesToTheBytes) {
  const auto tokenizer = tokenizer_of(byte_level_json());
  for (const std::string text : {"the thing\n \t\u00E9 猫 \U0001F600 <tool>", "", " ", "\u0120"}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text).ids), text);
  }
  EXPECT_EQ(tokenizer->decode(Ids{0xE7, 262, 0x8C}), "\xE7\x8C");
  EXPECT_EQ(tokenizer->decode(Ids{262, 258}, {false}), "<|end|> the");
  EXPECT_EQ(tokenizer->label(258), "the");
  EXPECT_EQ(tokenizer->label(0x20), "␣");
  EXPECT_EQ(tokenizer->label(0x0A), "\\n");
  EXPECT_EQ(tokenizer->label(0xE7), "\\xE7");
}

TEST(ByteLevelTokenizer, ALongPieceEnds) {
  // A piece of a megabyte: if each merge scanned the whole piece, this would take hours.
  const auto tokenizer = tokenizer_of(byte_level_json());
  std::string text;
  while (text.size() < 1'000'000) text += "thing";
  EXPECT_EQ(tokenizer->encode(text).ids.size(), 400'000U);
}

TEST(TokenizerJson, IdsOutOfRangeAreRefused) {
  const auto tokenizer = tokenizer_of(byte_level_json());
  for (const std::int64_t id : {-1, 264}) {
    const auto refused = ThrowsMessage<InvalidArgument>(HasSubstr("expected 0 <= id < 264"));
    EXPECT_THAT([&] { (void)tokenizer->token(id); }, refused);
    EXPECT_THAT([&] { (void)tokenizer->label(id); }, refused);
    EXPECT_THAT([&] { (void)tokenizer->is_special(id); }, refused);
  }
  EXPECT_THAT([&] { (void)tokenizer->decode(Ids{-1}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("expected 0 <= id < 264")));
  // A model may have more ids than its tokenizer has tokens.
  EXPECT_EQ(tokenizer->decode(Ids{258, 264, 1000, 258}), " the the");
  EXPECT_FALSE(tokenizer->is_special(263));
  EXPECT_TRUE(tokenizer->is_special(262));
  EXPECT_EQ(tokenizer->id("Ġthe"), 258);
  EXPECT_EQ(tokenizer->id("nothing"), std::nullopt);
}

TEST(TokenizerJson, TextsThatAreNotUtf8AreRefused) {
  const auto tokenizer = tokenizer_of(bert_json());
  EXPECT_THAT([&] { (void)tokenizer->encode("ab\xFFx"); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("Tokenizer::encode: the text is not valid UTF-8 at byte 2, 0xFF")));
  EXPECT_THAT([&] { (void)tokenizer->encode_pair("ab", "\xC3"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("Tokenizer::encode_pair: ")));
  const auto bytes = tokenizer_of(byte_level_json());
  EXPECT_THAT([&] { (void)bytes->encode_pair("a", "b"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has no form for pairs")));
}

TEST(TokenizerJson, WhatHeedDoesNotKnowIsNamed) {
  for (const char* part : {"normalizer", "pre_tokenizer"}) {
    expect_json_refused(bert_json(std::string(", \"") + part + R"(": {"type": "Other"})"),
                        std::string(part) + ".type is 'Other', which heed does not know");
  }
  expect_json_refused(replaced(bert_json(), "BertProcessing", "Other"),
                      "post_processor.type is 'Other'");
  expect_json_refused(
      replaced(bert_json(), R"("type": "WordPiece", "prefix")", R"("type": "CTC", "prefix")"),
      "decoder.type is 'CTC'");
  expect_json_refused(
      replaced(bert_json(), R"("type": "WordPiece", "unk)", R"("type": "Other", "unk)"),
      "model.type is 'Other'");
  expect_json_refused(byte_level_json(R"(, "pre_tokenizer": {"type": "Split",
                          "pattern": {"Regex": "\\w+"}, "behavior": "Isolated"})"),
                      R"(pre_tokenizer.pattern.Regex is "\\w+", which has '\w' at byte 0)");
}

TEST(TokenizerJson, IdsHaveNoHolesAndNoTwins) {
  expect_json_refused(replaced(bert_json(), "\"cat\": 9", "\"cat\": 99"),
                      "no token has the id 9, though '##s' has 10");
  expect_json_refused(replaced(bert_json(), "\"cat\": 9", "\"cat\": 8"),
                      "the tokens '##able' and 'cat' have the same id 8");
  expect_json_refused(replaced(bert_json(), "\"cat\": 9", "\"cat\": -9"), "has the id -9");
  expect_json_refused(replaced(bert_json(), "\"cat\": 9", "\"cat\": 9.5"),
                      "model.vocab has no integer for 'cat'");
  expect_json_refused(replaced(bert_json(), "\"cat\": 9", "\"cat\": 18446744073709551615"),
                      "the number 18446744073709551615 is beyond 63 bits");
  expect_json_refused(replaced(bert_json(), "\"cat\": 9", "\"cat\": 9, \"cat\": 9"),
                      "the key 'cat' occurs twice");
  expect_json_refused(
      replaced(bert_json(), R"("id": 4, "content": "[MASK]")", R"("id": 7, "content": "[MASK]")"),
      "the token '[MASK]' has two ids, 4 and 7");
}

TEST(TokenizerJson, BrokenPartsAreNamed) {
  expect_json_refused("", "not valid JSON");
  expect_json_refused("[]", "the file is an array, expected an object");
  expect_json_refused("{}", "the file has no 'model'");
  expect_json_refused(std::string(100'000, '['), "more than 64 values are nested");
  expect_json_refused(replaced(bert_json(), R"("unk_token": "[UNK]")", R"("unk_token": "no")"),
                      "model.unk_token is 'no', which is no token");
  expect_json_refused(replaced(bert_json(), R"(["[SEP]", 3])", R"(["[SEP]", 18])"),
                      "post_processor.sep has the id 18, expected 0 <= id < 18");
  expect_json_refused(replaced(byte_level_json(), "\"t h\"", "\"th\""),
                      "a merge is not two tokens");
  expect_json_refused(replaced(byte_level_json(), "\"t h\"", "\"q h\""),
                      "a merge needs the token 'qh', which is none");
  expect_json_refused(replaced(byte_level_json(), R"("type": "BPE")", R"("dropout": 0.1)"),
                      "model.dropout is not 0");
}

}  // namespace
}  // namespace heed
