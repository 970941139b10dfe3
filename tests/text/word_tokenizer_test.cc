#include "heed/text/word_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/refusal.h"
#include "support/tensors.h"

namespace heed { namespace {

using std::string_literals::operator""s;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::elements_of;
using testing_support::Refuses;
using text::WordTokenizer;

// Returns the labels of the pieces of a text, split by a tokenizer that knows all of them.
std::vector<std::string> pieces(std::string_view text) {
  const WordTokenizer tokenizer(text);
  return tokenizer.labels(tokenizer.ids(text));
}

std::string round_trip(const WordTokenizer& tokenizer, std::string_view text) {
  return tokenizer.decode(tokenizer.ids(text));
}

TEST(WordTokenizer, NumbersPiecesInOrderOfAppearance) {
  const WordTokenizer tokenizer("the cat chased the other cat");
  EXPECT_EQ(tokenizer.vocab_size(), 256 + 4);
  const auto ids = tokenizer.ids("the cat chased the other cat");
  EXPECT_THAT(ids, ElementsAre(256, 257, 258, 256, 259, 257));
  EXPECT_EQ(tokenizer.decode(ids), "the cat chased the other cat");
  EXPECT_EQ(tokenizer.token(257), " cat");
  EXPECT_EQ(tokenizer.label(257), "cat");
}

TEST(WordTokenizer, TheExampleSentenceIsSixTokens) {
  EXPECT_THAT(pieces("The cat sat on the mat"),
              ElementsAre("The", "cat", "sat", "on", "the", "mat"));
}

TEST(WordTokenizer, SplitsWordsAndPunctuation) {
  EXPECT_THAT(pieces("\"Don't stop,\" he said..."),
              ElementsAre("\"", "Don't", "stop", ",", "\"", "he", "said", ".", ".", "."));
  EXPECT_THAT(pieces("state-of-the-art l’été 'quoted' - 3.14"),
              ElementsAre("state-of-the-art", "l’été", "'", "quoted", "'", "-", "3", ".", "14"));
  EXPECT_THAT(pieces("snake_case a--b"), ElementsAre("snake", "_", "case", "a", "-", "-", "b"));
}

TEST(WordTokenizer, SplitsEveryScript) {
  EXPECT_THAT(pieces("猫がマットに座った。"),
              ElementsAre("猫", "が", "マ", "ッ", "ト", "に", "座", "っ", "た", "。"));
  EXPECT_THAT(pieces("고양이가 앉았다"), ElementsAre("고양이가", "앉았다"));
  EXPECT_THAT(pieces("बिल्ली बैठी"), ElementsAre("बिल्ली", "बैठी"));
  EXPECT_THAT(pieces("جلست القطة"), ElementsAre("جلست", "القطة"));
  EXPECT_THAT(pieces("Кошка сидела!"), ElementsAre("Кошка", "сидела", "!"));
  EXPECT_THAT(pieces("hi 👩‍👩‍👧🇩🇪 e\u0301a"),
              ElementsAre("hi", "👩‍👩‍👧", "🇩🇪", "e\u0301a"));
}

TEST(WordTokenizer, AWordIsTheSameTokenAtTheStart) {
  const WordTokenizer latin("cat cat");
  EXPECT_THAT(latin.ids("cat cat"), ElementsAre(256, 256));
  const WordTokenizer han("猫猫");
  EXPECT_THAT(han.ids("猫猫"), ElementsAre(256, 256));
}

TEST(WordTokenizer, KeepsWhitespace) {
  EXPECT_THAT(pieces("a  b\n\n c\td\r\n"),
              ElementsAre("a", "␣", "b", "\\n\\n", "c", "\\t", "d", "\\r\\n"));
  EXPECT_THAT(pieces("a\u00A0b "), ElementsAre("a", "\\u{A0}", "b", "␣"));
}

TEST(WordTokenizer, EncodesUnknownPiecesAsBytes) {
  const WordTokenizer tokenizer("cat");
  EXPECT_THAT(tokenizer.ids("cat dog"), ElementsAre(256, ' ', 'd', 'o', 'g'));
  EXPECT_THAT(tokenizer.ids("dog cat"), ElementsAre('d', 'o', 'g', 256));
  EXPECT_THAT(tokenizer.ids("é"), ElementsAre(0xC3, 0xA9));
  EXPECT_THAT(WordTokenizer("").ids("Hi"), ElementsAre('H', 'i'));
  EXPECT_TRUE(tokenizer.ids("").empty());
  EXPECT_EQ(tokenizer.decode({}), "");
}

TEST(WordTokenizer, TokensKnowTheirBytes) {
  const WordTokenizer tokenizer("the cat 猫");
  const std::string text = "the dog, cat猫";
  const text::Encoding encoding = tokenizer.encode(text);
  std::vector<std::string> bytes;
  for (const text::TextRange& range : encoding.ranges) {
    bytes.push_back(text.substr(static_cast<std::size_t>(range.begin),
                                static_cast<std::size_t>(range.end - range.begin)));
  }
  EXPECT_THAT(bytes, ElementsAre("the", " ", "d", "o", "g", ",", " cat", "\xE7", "\x8C", "\xAB"));
  EXPECT_THAT(encoding.type_ids, testing::Each(0));
  EXPECT_EQ(encoding.type_ids.size(), encoding.ids.size());
}

TEST(WordTokenizer, IsATokenizer) {
  const WordTokenizer words("the cat");
  const text::Tokenizer& tokenizer = words;
  EXPECT_EQ(tokenizer.id(" cat"), 257);
  EXPECT_EQ(tokenizer.id("c"), 'c');
  EXPECT_EQ(tokenizer.id("cat"), std::nullopt);
  EXPECT_FALSE(tokenizer.is_special(257));
  EXPECT_EQ(tokenizer.special_tokens().unknown, std::nullopt);
  EXPECT_THAT(tokenizer.tokens(tokenizer.ids("the cat")), ElementsAre(" the", " cat"));
  EXPECT_THAT([&] { static_cast<void>(tokenizer.is_special(258)); }, Refuses("id", "258"));
  EXPECT_THAT([&] { tokenizer.encode_pair("the", "cat"); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has no form for pairs")));
  EXPECT_THAT([&] { static_cast<void>(tokenizer.apply_chat_template({})); },
              ThrowsMessage<InvalidArgument>(HasSubstr("has no template")));
}

TEST(WordTokenizer, RoundTripsWhatStartsWithSpace) {
  for (const std::string_view vocabulary : {"", "cat", " cat", "  cat", "猫 cat", " ", "\n cat"}) {
    const WordTokenizer tokenizer(vocabulary);
    for (const std::string_view text : {" ", "  ", "cat", " cat", "  cat", "\ncat", " \n cat",
                                        "cat ", "猫", " 猫", " \u0301", "\u0301"}) {
      EXPECT_EQ(round_trip(tokenizer, text), text) << "vocabulary \"" << vocabulary << '"';
    }
  }
}

TEST(WordTokenizer, ShowsControlCharactersAsEscapes) {
  const WordTokenizer tokenizer("a \x1B \u202E \0 b"s);
  const auto ids = tokenizer.ids("a \x1B \u202E \0 b"s);
  EXPECT_THAT(tokenizer.labels(ids), ElementsAre("a", "\\x1B", "\\u{202E}", "\\x00", "b"));
  EXPECT_EQ(tokenizer.decode(ids), "a \x1B \u202E \0 b"s);
  EXPECT_EQ(tokenizer.label('a'), "a");
  EXPECT_EQ(tokenizer.label(' '), "␣");
  EXPECT_EQ(tokenizer.label('\n'), "\\n");
  EXPECT_EQ(tokenizer.label(0xE2), "\\xE2");
}

TEST(WordTokenizer, RefusesInvalidText) {
  const WordTokenizer tokenizer("cat");
  EXPECT_THAT([&] { tokenizer.ids("cat\xC3"); },
              ThrowsMessage<InvalidArgument>(
                  "WordTokenizer::encode: the text is not valid UTF-8 at byte 3, 0xC3"));
  EXPECT_THAT([] { WordTokenizer("a\xED\xA0\x80"); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("WordTokenizer: the text is not valid UTF-8 at byte 1")));
}

TEST(WordTokenizer, RefusesIdsOutOfRange) {
  const WordTokenizer tokenizer("cat");
  const std::vector<std::int64_t> ids{256, 257};
  EXPECT_THAT([&] { tokenizer.decode(ids); }, Refuses("id", "257"));
  EXPECT_THAT([&] { tokenizer.token(-1); }, Refuses("id", "-1"));
  EXPECT_THAT([&] { tokenizer.label(257); }, ThrowsMessage<InvalidArgument>(HasSubstr("label")));
}

TEST(WordTokenizer, DecodesBytesAsTheyAre) {
  const std::vector<std::int64_t> ids{0xFF, ' ', 0x80};
  EXPECT_EQ(WordTokenizer("").decode(ids), "\xFF \x80");
  const std::vector<std::int64_t> space{' '};
  EXPECT_EQ(WordTokenizer("").decode(space), " ");
}

TEST(WordTokenizer, IsBuiltFromSeveralTexts) {
  const WordTokenizer tokenizer({"the cat", "the dog"});
  EXPECT_EQ(tokenizer.vocab_size(), 256 + 3);
  EXPECT_THAT(tokenizer.ids("the dog"), ElementsAre(256, 258));
}

// Returns code points at which splitting rules meet, more often than by chance.
rc::Gen<std::string> utf8_text() {
  const auto code_point = rc::gen::oneOf(
      rc::gen::elementOf(std::vector<char32_t>{
          U' ',  U' ',   U' ',   U'a', U'b',  U'1',  U'\'', U'-',    U'\n',   U'\r',   0,
          0x301, 0x200D, 0xFE0F, 0xA0, U'猫', U'ー', U'한', 0x1F469, 0x1F1E9, 0x10FFFF}),
      rc::gen::suchThat(rc::gen::inRange<char32_t>(0, 0x110000),
                        [](char32_t c) { return c < 0xD800 || c > 0xDFFF; }));
  return rc::gen::map(
      rc::gen::container<std::u32string>(code_point), [](const std::u32string& text) {
        std::string utf8;
        for (const char32_t c : text) {
          if (c < 0x80) {
            utf8 += static_cast<char>(c);
            continue;
          }
          const int following = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
          const char32_t lead = following == 1 ? 0xC0U : following == 2 ? 0xE0U : 0xF0U;
          utf8 += static_cast<char>(lead | c >> 6 * following);
          for (int i = following - 1; i >= 0; --i) {
            utf8 += static_cast<char>(0x80U | (c >> 6 * i & 0x3FU));
          }
        }
        return utf8;
      });
}

TEST(WordTokenizer, RoundTripsAnyTextThroughAnyVocabulary) {
  EXPECT_TRUE(rc::check("decode(encode(text)) == text", [] {
    const std::string vocabulary = *utf8_text();
    const std::string text = *utf8_text();
    const WordTokenizer tokenizer(vocabulary);
    RC_ASSERT(round_trip(tokenizer, text) == text);
    RC_ASSERT(round_trip(tokenizer, vocabulary) == vocabulary);
    RC_ASSERT(round_trip(WordTokenizer({text, vocabulary}), text + vocabulary) ==
              text + vocabulary);
  }));
}

TEST(WordTokenizer, KnowsEveryPieceOfItsOwnText) {
  EXPECT_TRUE(rc::check("a text's own vocabulary needs no bytes", [] {
    const std::string text = *utf8_text();
    for (const std::int64_t id : WordTokenizer(text).ids(text)) RC_ASSERT(id >= 256);
  }));
}

TEST(ToIds, ReadsTheRunningExample) {
  const auto ids = to_ids({"I", "love", "AI", "!"});
  EXPECT_EQ(ids.shape(), Shape{4});
  EXPECT_THAT(ids.elements(), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(elements_of(to_ids({"AI", "love"})), ElementsAre(2, 1));
  const std::vector<std::string_view> vocab{"a", "b"};
  EXPECT_THAT(elements_of(to_ids({"b"}, vocab)), ElementsAre(1));
}

TEST(ToIds, NamesTheUnknownToken) {
  EXPECT_THAT(
      [] {
        to_ids({"I", "hate"});
      },
      ThrowsMessage<InvalidArgument>("to_ids: token \"hate\" is not in the vocabulary "
                                     "(\"I\", \"love\", \"AI\", \"!\")"));
}

}  // namespace
}  // namespace heed
