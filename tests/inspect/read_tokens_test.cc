#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/inspect/patterns.h"
#include "heed/text/tokenizer.h"

namespace heed::inspect { namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

// A tokenizer of ten ids, the first two of which are special.
class FewTokens : public text::Tokenizer {
 public:
  std::int64_t vocab_size() const override { return 10; }
  text::Encoding encode(std::string_view, const text::EncodeOptions&) const override { return {}; }
  text::Encoding encode_pair(std::string_view, std::string_view,
                             const text::EncodeOptions&) const override {
    return {};
  }
  std::string decode(std::span<const std::int64_t>, const text::DecodeOptions&) const override {
    return {};
  }
  std::string token(std::int64_t id) const override { return std::to_string(id); }
  std::string label(std::int64_t id) const override { return std::to_string(id); }
  std::optional<std::int64_t> id(std::string_view) const override { return std::nullopt; }
  bool is_special(std::int64_t id) const override { return id < 2 || id == 9; }
  const text::SpecialTokens& special_tokens() const override { return special_; }

 private:
  text::SpecialTokens special_{.unknown = 9};
};

// Returns special tokens around pieces of the given sizes, which cover the text from its beginning.
text::Encoding encoding_of(const std::vector<std::int64_t>& sizes) {
  text::Encoding encoding{.ids = {0}, .ranges = {{0, 0}}, .type_ids = {}};
  std::int64_t begin = 0;
  for (const std::int64_t size : sizes) {
    encoding.ids.push_back(5);
    encoding.ranges.push_back({begin, begin + size});
    begin += size;
  }
  encoding.ids.push_back(1);
  encoding.ranges.push_back({0, 0});
  encoding.type_ids.assign(encoding.ids.size(), 0);
  return encoding;
}

TEST(ReadTokens, WordsPunctuationAndSpecialTokens) {
  //                                    un·known·" words"·","·" é"·"!?"
  const TokenSequence tokens =
      read_tokens(FewTokens(), encoding_of({2, 5, 6, 1, 3, 2}), "unknown words, é!?");
  EXPECT_THAT(tokens.is_special, ElementsAre(true, false, false, false, false, false, false, true));
  EXPECT_THAT(tokens.is_punctuation,
              ElementsAre(false, false, false, false, true, false, true, false));
  EXPECT_THAT(tokens.words, ElementsAre(-1, 0, 0, 1, -1, 2, -1, -1));
}

TEST(ReadTokens, AnApostropheEndsAWord) {
  const TokenSequence tokens = read_tokens(FewTokens(), encoding_of({2, 1, 1}), "it's");
  EXPECT_THAT(tokens.words, ElementsAre(-1, 0, -1, 1, -1));
}

// Byte tokenizers split characters.
TEST(ReadTokens, BytesOfACharacterAreOneWord) {
  const TokenSequence cut = read_tokens(FewTokens(), encoding_of({2, 1, 1}), "aé b");
  EXPECT_THAT(cut.words, ElementsAre(-1, 0, 0, 1, -1));
  text::Encoding shared = encoding_of({2, 2});
  shared.ranges[1] = shared.ranges[2] = {0, 2};
  EXPECT_THAT(read_tokens(FewTokens(), shared, "é").words, ElementsAre(-1, 0, 0, -1));
}

TEST(ReadTokens, TextsOfAPairShareNoWord) {
  text::Encoding encoding{.ids = {0, 5, 1, 5, 5, 1},
                          .ranges = {{0, 0}, {0, 2}, {0, 0}, {0, 1}, {1, 2}, {0, 0}},
                          .type_ids = {0, 0, 0, 1, 1, 1}};
  const TokenSequence tokens = read_tokens(FewTokens(), encoding, "ab", "c.");
  EXPECT_THAT(tokens.words, ElementsAre(-1, 0, -1, 1, -1, -1));
  EXPECT_THAT(tokens.is_punctuation, ElementsAre(false, false, false, false, true, false));
}

TEST(ReadTokens, IdsAloneHaveNoWords) {
  const TokenSequence tokens = read_tokens(FewTokens(), {0, 7, 7});
  EXPECT_THAT(tokens.ids, ElementsAre(0, 7, 7));
  EXPECT_THAT(tokens.is_special, ElementsAre(true, false, false));
  EXPECT_THAT(tokens.words, ElementsAre(-1, -1, -1));
}

TEST(ReadTokens, AnUnknownTokenIsAWord) {
  text::Encoding encoding = encoding_of({3, 1});
  encoding.ids[1] = encoding.ids[2] = 9;
  const TokenSequence tokens = read_tokens(FewTokens(), encoding, "foo?");
  EXPECT_THAT(tokens.is_special, ElementsAre(true, false, false, true));
  EXPECT_THAT(tokens.is_punctuation, ElementsAre(false, false, true, false));
  EXPECT_THAT(tokens.words, ElementsAre(-1, 0, -1, -1));
}

TEST(ReadTokens, SaysWhatDoesNotFit) {
  EXPECT_THAT(
      [] {
        read_tokens(FewTokens(), {3, 10});
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("read_tokens: id 10 is not in the vocabulary of 10")));
  EXPECT_THAT(
      [] {
        read_tokens(FewTokens(), encoding_of({2, 3}), "four");
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("read_tokens: token 2 has the bytes 2 to 5, expected bytes of a text of 4")));
  text::Encoding broken = encoding_of({1});
  broken.ranges.pop_back();
  EXPECT_THAT([&] { read_tokens(FewTokens(), broken, "a"); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("has 3 ids, 2 ranges and 3 type ids, expected as many of each")));
}

}  // namespace
}  // namespace heed::inspect
