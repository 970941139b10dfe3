#include "heed/tasks/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "support/command.h"
#include "support/refusal.h"

namespace heed::tasks { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;
using testing_support::Refuses;

Vocabulary of(const std::vector<std::string>& texts, Units units = Units::kWords) {
  return {texts, units};
}

TEST(Vocabulary, NumbersFrequentWordsFirst) {
  const Vocabulary words = of({"b a c", "c\ta  c"});
  EXPECT_EQ(words.size(), 7);
  EXPECT_EQ(words.token(0), "<pad>");
  EXPECT_EQ(words.token(4), "c");
  EXPECT_EQ(words.token(5), "a");
  EXPECT_THAT(words.ids(" b zebra\nc "), ElementsAre(6, kUnknownId, 4));
  EXPECT_EQ(words.decode(std::vector<std::int64_t>{1, 4, 3, 6, 2, 0}), "c <unk> b");
}

TEST(Vocabulary, SplitsCharactersAsReadersDo) {
  EXPECT_THAT(split_units("e\u0301 ß👩‍🚀", Units::kCharacters),
              ElementsAre("e\u0301", " ", "ß", "👩‍🚀"));
  const Vocabulary characters = of({"zwölf"}, Units::kCharacters);
  EXPECT_EQ(characters.decode(characters.ids("flöz")), "flöz");
}

TEST(Vocabulary, ReadsNoTextAsASpecialToken) {
  const Vocabulary words = of({"<pad> <eos> a"});
  EXPECT_EQ(words.size(), 5);
  EXPECT_THAT(words.ids("<pad> <eos> a"), ElementsAre(kUnknownId, kUnknownId, 4));
}

TEST(Vocabulary, IsATokenizer) {
  const Vocabulary words = of({"b a c", "c\ta  c"});
  const text::Tokenizer& tokenizer = words;
  EXPECT_EQ(tokenizer.vocab_size(), 7);
  const text::Encoding encoding = tokenizer.encode(" b zebra\u3000c ");
  EXPECT_THAT(encoding.ids, ElementsAre(6, kUnknownId, 4));
  EXPECT_THAT(encoding.ranges,
              ElementsAre(text::TextRange{1, 2}, text::TextRange{3, 8}, text::TextRange{11, 12}));
  EXPECT_THAT(encoding.type_ids, ElementsAre(0, 0, 0));
  EXPECT_EQ(tokenizer.id("<eos>"), kEosId);
  EXPECT_EQ(tokenizer.id("zebra"), std::nullopt);
  EXPECT_TRUE(tokenizer.is_special(kUnknownId));
  EXPECT_FALSE(tokenizer.is_special(4));
  EXPECT_EQ(tokenizer.special_tokens().padding, kPadId);
  EXPECT_EQ(tokenizer.special_tokens().unknown, kUnknownId);
  const std::vector<std::int64_t> ids{1, 4, 2};
  EXPECT_EQ(tokenizer.decode(ids, {.skip_special_tokens = false}), "<bos> c <eos>");
  EXPECT_THAT(tokenizer.tokens(ids), ElementsAre("<bos>", "c", "<eos>"));
  const Vocabulary characters = of({"zö\u0301"}, Units::kCharacters);
  EXPECT_THAT(characters.encode("ö\u0301z").ranges,
              ElementsAre(text::TextRange{0, 4}, text::TextRange{4, 5}));
}

TEST(Vocabulary, OfNothingHasTheSpecialTokens) {
  EXPECT_EQ(of({}).size(), 4);
  EXPECT_TRUE(of({""}).ids("").empty());
}

RC_GTEST_PROP(Vocabulary, EncodesWhatItWasBuiltFrom, ()) {
  const auto text = *rc::gen::container<std::string>(rc::gen::inRange(' ', '~'));
  const Vocabulary characters = of({text}, Units::kCharacters);
  RC_ASSERT(characters.decode(characters.ids(text)) == text);
  RC_ASSERT(Vocabulary::from_json(characters.to_json()) == characters);
}

TEST(Vocabulary, IsWrittenATokenALine) {
  EXPECT_EQ(of({"\"œ\\"}).to_json(),
            "{\n \"format\": \"heed.vocabulary\",\n \"version\": 1,\n \"units\": \"words\",\n"
            " \"tokens\": [\n  \"<pad>\",\n  \"<bos>\",\n  \"<eos>\",\n  \"<unk>\",\n"
            "  \"\\\"œ\\\\\"\n ]\n}\n");
}

TEST(Vocabulary, IsSavedAndLoaded) {
  const testing_support::TemporaryFolder folder;
  const Vocabulary words = of({"\"quoted\" \\ mille œuf", "x"});
  words.save(folder / "words.json");
  EXPECT_EQ(Vocabulary::load(folder / "words.json"), words);
  EXPECT_THROW(Vocabulary::load(folder / "none.json"), IoError);
  EXPECT_THROW(Vocabulary::load(folder / ""), IoError);
}

TEST(Vocabulary, RefusesOtherJson) {
  const auto refuses = [](const std::string& text, const char* problem) {
    EXPECT_THAT([&] { Vocabulary::from_json(text, "v.json"); },
                ThrowsMessage<FormatError>(testing::AllOf(HasSubstr("v.json"), HasSubstr(problem))))
        << text;
  };
  const std::string start = R"({"format": "heed.vocabulary", "version": 1, "units": "words")";
  refuses("", "not valid JSON");
  refuses("{", "not valid JSON");
  refuses(std::string(100000, '['), "not valid JSON");
  refuses("\"\xFF\"", "not valid JSON");
  refuses("1e999", "v.json: at byte 5: not valid JSON: number overflow parsing '1e999'");
  refuses(R"({"version": 1e999})", "at byte 17: not valid JSON: number overflow");
  refuses("{\"version\" 1}",
          "at byte 12: not valid JSON: syntax error while parsing object separator");
  refuses(R"({"format": "heed.vocabulary", "format": 1})", "'format' occurs twice");
  refuses("[]", "expected an object with \"format\": \"heed.vocabulary\"");
  refuses(R"({"format": "heed.vocabulary", "version": 2})", "expected \"version\": 1");
  refuses(R"({"format": "heed.vocabulary", "version": 1, "units": 3})", "expected \"units\"");
  refuses(start + "}", "expected \"tokens\"");
  refuses(start + R"(, "tokens": ["<pad>", 1]})", "expected \"tokens\"");
  for (const char* tokens :
       {"3", R"({"<pad>": "<pad>"})", R"(["<pad>", "<bos>", "<eos>", "<unk>", ["a"]])",
        R"(["<pad>", "<bos>", "<eos>", "<unk>", {"a": "b"}])",
        R"(["<pad>", "<bos>", "<eos>", "<unk>", -1])",
        R"(["<pad>", "<bos>", "<eos>", "<unk>", true])",
        R"(["<pad>", "<bos>", "<eos>", "<unk>", null])"}) {
    refuses(start + R"(, "tokens": )" + tokens + "}", "expected \"tokens\"");
  }
  refuses(R"([{"format": "heed.vocabulary"}])", "expected an object");
  refuses(R"({"more": {"format": "heed.vocabulary"}})", "expected an object");
  refuses(start + R"(, "tokens": ["a", "b", "c", "d"]})",
          "expected tokens that begin with <pad>, <bos>, <eos>, <unk>");
  refuses(start + R"(, "tokens": ["<pad>", "<bos>", "<eos>", "<unk>", "a", ""]})",
          "expected \"tokens\"");
  refuses(start + R"(, "tokens": ["<pad>", "<bos>", "<eos>", "<unk>", "a", "a"]})",
          "a token is listed twice");
}

TEST(Vocabulary, RefusesMisuse) {
  EXPECT_THAT([] { of({"a\xC3"}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("not valid UTF-8 at byte 1")));
  const Vocabulary words = of({"a"});
  EXPECT_THAT([&] { words.token(5); }, Refuses("id", "5"));
  EXPECT_THROW(words.decode(std::vector<std::int64_t>{-1}), InvalidArgument);
}

}  // namespace
}  // namespace heed::tasks
