// Ids decoded one by one give the text that they give at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/tasks/vocabulary.h"
#include "heed/text/characters.h"
#include "heed/text/word_tokenizer.h"
#include "support/refusal.h"
#include "text/made_tokenizers.h"

namespace heed::text { namespace {

using testing::ElementsAre;
using testing_support::Refuses;
using Ids = std::vector<std::int64_t>;

// BPE over characters with byte fallback, like models of SentencePiece.
std::string fallback_json(const std::string& decoder) {
  std::string json = R"({"added_tokens": [{"id": 0, "content": "<s>", "special": true}],
      "model": {"type": "BPE", "byte_fallback": true, "merges": [], "vocab": {"<s>": 0)";
  const std::vector<std::string> tokens{"▁",      "▁a",     "b",      " ",      "▁▁",     "#",
                                        "<0xE7>", "<0x8C>", "<0xAB>", "<0x20>", "<0xFF>", "<0x61>",
                                        ".",      " do",    " not",   "猫"};
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    json += ", \"" + tokens[i] + "\": " + std::to_string(i + 1);
  }
  return json + "}}, \"decoder\": " + decoder + "}";
}

constexpr const char* kSpaces =
    R"({"type": "Replace", "pattern": {"String": "▁"}, "content": " "})";
constexpr const char* kStrip = R"({"type": "Strip", "content": " ", "start": 1, "stop": 1})";

std::string sequence_of(const std::vector<std::string>& decoders) {
  std::string all;
  for (const std::string& decoder : decoders) all += (all.empty() ? "" : ", ") + decoder;
  return R"({"type": "Sequence", "decoders": [)" + all + "]}";
}

std::vector<std::unique_ptr<const Tokenizer>> kinds() {
  using testing_support::tokenizer_of;
  const std::string fallback = R"({"type": "ByteFallback"})";
  const std::string fuse = R"({"type": "Fuse"})";
  const std::string pieces = R"({"type": "WordPiece", "prefix": "#", "cleanup": true})";
  std::vector<std::unique_ptr<const Tokenizer>> kinds;
  kinds.push_back(tokenizer_of(testing_support::bert_json()));
  kinds.push_back(tokenizer_of(testing_support::byte_level_json()));
  for (const std::string& decoder :
       {sequence_of({kSpaces, fallback, fuse, kStrip}), sequence_of({fallback, kStrip}),
        sequence_of({fuse, kSpaces, pieces}), sequence_of({kStrip, pieces, fuse}), pieces, fallback,
        std::string("null")}) {
    kinds.push_back(tokenizer_of(fallback_json(decoder)));
  }
  kinds.push_back(std::make_unique<const Characters>("aé猫 "));
  kinds.push_back(std::make_unique<const WordTokenizer>("the cat, the mat"));
  const std::vector<std::string> texts{"a b c"};
  kinds.push_back(std::make_unique<const tasks::Vocabulary>(texts, tasks::Units::kWords));
  kinds.push_back(std::make_unique<const tasks::Vocabulary>(texts, tasks::Units::kCharacters));
  return kinds;
}

Ids drawn_ids(const Tokenizer& tokenizer) {
  return *rc::gen::container<Ids>(rc::gen::inRange<std::int64_t>(0, tokenizer.vocab_size()));
}

// Returns all text that a stream after a context gives.
std::string streamed(const Tokenizer& tokenizer, const Ids& context, const Ids& ids,
                     const DecodeOptions& options) {
  const auto stream = tokenizer.stream(context, options);
  std::string text;
  for (const std::int64_t id : ids) text += stream->add(id);
  return text + stream->finish();
}

RC_GTEST_PROP(DecodeStream, GivesTogetherWhatDecodeGives, ()) {
  static const auto all = kinds();
  const Tokenizer& tokenizer = *all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const DecodeOptions options{.skip_special_tokens = *rc::gen::arbitrary<bool>()};
  const Ids context = drawn_ids(tokenizer);
  const Ids ids = drawn_ids(tokenizer);
  Ids both = context;
  both.insert(both.end(), ids.begin(), ids.end());

  const std::string whole = tokenizer.decode(both, options);
  RC_ASSERT(streamed(tokenizer, {}, both, options) == whole);
  const std::string before = tokenizer.decode(context, options);
  const std::string after = streamed(tokenizer, context, ids, options);
  // A context that ends within a character gives another text.
  RC_ASSERT(whole == before + after || (!whole.starts_with(before) && whole.ends_with(after)));
}

// A user's tokenizer, which decodes backwards.
class Backwards final : public Tokenizer {
 public:
  std::int64_t vocab_size() const override { return 3; }
  Encoding encode(std::string_view, const EncodeOptions&) const override { return {}; }
  std::string decode(std::span<const std::int64_t> ids, const DecodeOptions&) const override {
    std::string text;
    for (const std::int64_t id : ids) text.insert(0, token(id));
    return text;
  }
  std::string token(std::int64_t id) const override {
    check_id("Backwards::token", id);
    return std::string(1, static_cast<char>('a' + id));
  }
  std::optional<std::int64_t> id(std::string_view) const override { return std::nullopt; }
};

TEST(DecodeStream, OfAnyTokenizerGivesTheTextInTheEnd) {
  const Backwards tokenizer;
  const auto stream = tokenizer.stream(Ids{2});
  EXPECT_EQ(stream->add(0), "");
  EXPECT_EQ(stream->add(1), "");
  EXPECT_THAT([&] { stream->add(3); }, Refuses("id", "3"));
  EXPECT_EQ(stream->finish(), "bac");
}

TEST(DecodeStream, GoesOnWhereItsContextEnded) {
  const WordTokenizer words("the cat");
  const auto stream = words.stream(words.ids("the"));
  EXPECT_EQ(stream->add(words.ids("the cat").back()), " cat");
  const auto tokenizer = testing_support::tokenizer_of(
      fallback_json(sequence_of({kSpaces, R"({"type": "ByteFallback"})", R"({"type": "Fuse"})",
                                 R"({"type": "Strip", "content": " ", "start": 1, "stop": 0})"})));
  const auto id = [&](std::string_view token) { return tokenizer->id(token).value(); };
  const auto after = tokenizer->stream(Ids{0, id("▁a")});
  std::vector<std::string> pieces;
  for (const char* token : {"▁a", "<0xE7>", "<0x8C>", "<0xAB>", "b"}) {
    pieces.push_back(after->add(id(token)));
  }
  EXPECT_THAT(pieces, ElementsAre(" a", "", "", "", "猫b"));
  // The end of the context, which becomes certain only now, is not repeated.
  const auto behind_bytes = tokenizer->stream(Ids{id("<0xE7>"), id("<0x8C>"), id("<0xAB>")});
  EXPECT_EQ(behind_bytes->add(id("b")), "b");
  const auto bytes_behind = tokenizer->stream(Ids{id("<0x61>")});
  EXPECT_EQ(bytes_behind->add(id("<0x61>")), "");
  EXPECT_EQ(bytes_behind->finish(), "a");
  const auto within = tokenizer->stream(Ids{id("b"), id("<0xE7>"), id("<0x8C>")});
  EXPECT_EQ(within->add(id("<0xAB>")), "");
  EXPECT_EQ(within->finish(), "猫");
  EXPECT_EQ(tokenizer->stream(Ids{id("<0xE7>")})->finish(), "");
  // A model may have more ids than there are tokens.
  EXPECT_EQ(after->add(99), "");
  EXPECT_THAT([&] { after->add(-1); }, Refuses("id", "-1"));
}

}  // namespace
}  // namespace heed::text
