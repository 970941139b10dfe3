#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "io/io_test_util.h"
#include "support/gguf_builder.h"
#include "support/refusal.h"
#include "text/made_tokenizers.h"

namespace heed { namespace {

using testing::ElementsAre;
using testing::ThrowsMessage;
using testing_support::Message;
using testing_support::Refuses;
using namespace testing_support;  // NOLINT(google-build-using-namespace): the builder's numbers

std::string text_array(const std::vector<std::string>& texts) {
  std::string values;
  for (const std::string& text : texts) values += gguf_text(text);
  return gguf_array(kText, texts.size(), values);
}

struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<std::int32_t> types;
};

// The 256 bytes, "th", "the", "Ġthe", "12" and the special "<|end|>".
Vocabulary small_vocabulary() {
  Vocabulary made;
  for (int byte = 0; byte < 256; ++byte) {
    made.tokens.emplace_back(text::visible_byte(static_cast<unsigned char>(byte)));
  }
  for (const char* token : {"th", "the", "Ġthe", "12", "<|end|>"}) made.tokens.emplace_back(token);
  made.types.assign(made.tokens.size(), 1);
  made.types.back() = 3;
  return made;
}

GgufBuilder small_file(const std::string& pre, const Vocabulary& vocabulary = small_vocabulary()) {
  std::string types;
  for (const std::int32_t type : vocabulary.types) types += raw(type);
  GgufBuilder file;
  file.add("tokenizer.ggml.model", kText, gguf_text("gpt2"))
      .add("tokenizer.ggml.pre", kText, gguf_text(pre))
      .add("tokenizer.ggml.tokens", kArray, text_array(vocabulary.tokens))
      .add("tokenizer.ggml.token_type", kArray, gguf_array(kI32, vocabulary.types.size(), types))
      .add("tokenizer.ggml.merges", kArray, text_array({"t h", "th e", "Ġ the", "1 2"}))
      .add("tokenizer.ggml.bos_token_id", kU32, raw(260U));
  return file;
}

std::vector<std::string> encoded(const GgufBuilder& file, std::string_view text) {
  const std::string bytes = file.build();
  return tokens_of(*text::tokenizer_from_gguf(GgufFile::parse(bytes_of(bytes), "f")), text);
}

void expect_gguf_refused(const GgufBuilder& file, const Message& problem) {
  const std::string bytes = file.build();
  EXPECT_THAT([&] { text::tokenizer_from_gguf(GgufFile::parse(bytes_of(bytes), "f")); },
              ThrowsMessage<FormatError>(problem));
}

TEST(GgufTokenizer, SplitsAsItsRecipeSays) {
  EXPECT_THAT(encoded(small_file("gpt-2"), "the 12 the"), ElementsAre("the", "Ġ", "12", "Ġthe"));
  EXPECT_THAT(encoded(small_file("default"), "the<|end|>12"), ElementsAre("the", "<|end|>", "12"));
  EXPECT_THAT(encoded(small_file("smollm"), "the 12"), ElementsAre("the", "Ġ", "1", "2"));
  // As in llama.cpp, texts are not normalised.
  EXPECT_THAT(encoded(small_file("qwen2"), "12 e\u0301"),
              ElementsAre("1", "2", "Ġ", "e", "\u00CC", "\u0123"));
  EXPECT_THAT(encoded(small_file("llama-bpe"), "12 the"), ElementsAre("<|end|>", "12", "Ġthe"));
}

TEST(GgufTokenizer, AddsTheTokensThatTheFileWants) {
  GgufBuilder file = small_file("gpt-2");
  file.add("tokenizer.ggml.add_bos_token", kBool, std::string(1, '\1'))
      .add("tokenizer.ggml.add_eos_token", kBool, std::string(1, '\1'))
      .add("tokenizer.ggml.eos_token_id", kU32, raw(257U));
  EXPECT_THAT(encoded(file, "th"), ElementsAre("<|end|>", "th", "the"));
  GgufBuilder without = small_file("llama-bpe");
  without.add("tokenizer.ggml.add_bos_token", kBool, std::string(1, '\0'));
  EXPECT_THAT(encoded(without, "th"), ElementsAre("th"));
}

TEST(GgufTokenizer, HasRolesAndATemplate) {
  GgufBuilder file = small_file("gpt-2");
  file.add("tokenizer.chat_template", kText,
           gguf_text("{% for message in messages %}{{'<|im_start|>' + message['role'] + "
                     "'\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
                     "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"));
  const std::string bytes = file.build();
  const auto tokenizer = text::tokenizer_from_gguf(GgufFile::parse(bytes_of(bytes), "f"));
  EXPECT_EQ(tokenizer->special_tokens().begin, 260);
  EXPECT_EQ(tokenizer->special_tokens().end, std::nullopt);
  EXPECT_TRUE(tokenizer->is_special(260));
  const std::vector<text::ChatMessage> messages{{"user", "Hi"}};
  EXPECT_EQ(tokenizer->apply_chat_template(messages),
            "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
}

TEST(GgufTokenizer, UnusedTokensAndIdsBeyondTheLastStandForNoText) {
  Vocabulary vocabulary = small_vocabulary();
  vocabulary.tokens.emplace_back("[PAD261]");
  vocabulary.types.push_back(5);
  const std::string bytes = small_file("gpt-2", vocabulary).build();
  const auto tokenizer = text::tokenizer_from_gguf(GgufFile::parse(bytes_of(bytes), "f"));
  EXPECT_EQ(tokenizer->decode(std::vector<std::int64_t>{257, 261, 262, 1000, 259}), "the12");
  EXPECT_EQ(tokenizer->token(261), "[PAD261]");
  EXPECT_THAT([&] { tokenizer->decode(std::vector<std::int64_t>{257, -1}); }, Refuses("id", "-1"));
}

TEST(GgufTokenizer, RefusesWhatItDoesNotKnow) {
  GgufBuilder unknown = small_file("gpt-2");
  expect_gguf_refused(unknown.add("tokenizer.ggml.treatment", kText, gguf_text("x")),
                      {"tokenizer.ggml.treatment", "'x'"});
  GgufBuilder stop = small_file("gpt-2");
  expect_gguf_refused(stop.add("tokenizer.ggml.eot_token_id", kU32, raw(261U)),
                      {"tokenizer.ggml.eot_token_id", "261"});
  expect_gguf_refused(small_file("x"), {"tokenizer.ggml.pre", "'x'"});
  expect_gguf_refused(GgufBuilder().add("tokenizer.ggml.model", kText, gguf_text("rwkv")),
                      {"tokenizer.ggml.model", "'rwkv'"});
  GgufBuilder role = small_file("gpt-2");
  expect_gguf_refused(role.add("tokenizer.ggml.eos_token_id", kU32, raw(261U)),
                      {"tokenizer.ggml.eos_token_id", "261"});
  Vocabulary twice = small_vocabulary();
  twice.tokens[256] = "the";
  expect_gguf_refused(small_file("gpt-2", twice), "the token 'the' has two ids, 256 and 257");
  Vocabulary without = small_vocabulary();
  without.tokens[256] = "x y";
  expect_gguf_refused(small_file("gpt-2", without),
                      "tokenizer.ggml.merges: 't h' is not two tokens that make a third");
  Vocabulary types = small_vocabulary();
  types.types.pop_back();
  expect_gguf_refused(small_file("gpt-2", types), {"token_type", "260"});
}

// Tokens of SentencePiece with their scores: "▁ab" can be made of "▁a" and "b" or of "▁" and "ab".
struct ScoredToken {
  std::string token;
  float score;
  std::int32_t type = 1;
};

std::vector<ScoredToken> scored_tokens() {
  std::vector<ScoredToken> tokens{{"<unk>", 0, 2}, {"<s>", 0, 3}, {"</s>", 0, 3}};
  for (const ScoredToken& token : {ScoredToken{"ab", -1},
                                   {"▁a", -2},
                                   {"▁ab", -3},
                                   {"bb", -4},
                                   {"▁", -5},
                                   {"a", -6},
                                   {"b", -7},
                                   {"c", -8},
                                   {"aa", -1},
                                   {"<0xC3>", 0, 6},
                                   {"<0xA9>", 0, 6}}) {
    tokens.push_back(token);
  }
  return tokens;
}

GgufBuilder scored_file(const std::vector<ScoredToken>& tokens = scored_tokens()) {
  std::vector<std::string> texts;
  std::string scores;
  std::string types;
  for (const ScoredToken& token : tokens) {
    texts.push_back(token.token);
    scores += raw(token.score);
    types += raw(token.type);
  }
  GgufBuilder file;
  file.add("tokenizer.ggml.model", kText, gguf_text("llama"))
      .add("tokenizer.ggml.tokens", kArray, text_array(texts))
      .add("tokenizer.ggml.scores", kArray, gguf_array(kF32, tokens.size(), scores))
      .add("tokenizer.ggml.token_type", kArray, gguf_array(kI32, tokens.size(), types))
      .add("tokenizer.ggml.bos_token_id", kU32, raw(1U))
      .add("tokenizer.ggml.unknown_token_id", kU32, raw(0U));
  return file;
}

TEST(GgufTokenizer, MergesByScores) {
  EXPECT_THAT(encoded(scored_file(), "ab"), ElementsAre("<s>", "▁ab"));
  EXPECT_THAT(encoded(scored_file(), "ab ac  bb"),
              ElementsAre("<s>", "▁ab", "▁a", "c", "▁", "▁", "bb"));
  // Of equal scores the leftmost wins.
  EXPECT_THAT(encoded(scored_file(), "caab"), ElementsAre("<s>", "▁", "c", "aa", "b"));
  EXPECT_THAT(encoded(scored_file(), "caaab"), ElementsAre("<s>", "▁", "c", "aa", "ab"));
  EXPECT_THAT(encoded(scored_file(), ""), ElementsAre("<s>"));
}

TEST(GgufTokenizer, FallsBackToBytesThatAreTokens) {
  EXPECT_THAT(encoded(scored_file(), "é"), ElementsAre("<s>", "▁", "<0xC3>", "<0xA9>"));
  EXPECT_THAT(encoded(scored_file(), "xya"), ElementsAre("<s>", "▁", "<unk>", "a"));
}

TEST(GgufTokenizer, DecodesMarksAndBytes) {
  const std::string bytes = scored_file().build();
  const auto tokenizer = text::tokenizer_from_gguf(GgufFile::parse(bytes_of(bytes), "f"));
  for (const char* text : {"ab é a", " a", "a  b", ""}) {
    EXPECT_EQ(tokenizer->decode(tokenizer->encode(text).ids), text);
  }
}

TEST(GgufTokenizer, PutsASpaceBeforeATextUnlessTheFileSaysNo) {
  GgufBuilder file = scored_file();
  file.add("tokenizer.ggml.add_space_prefix", kBool, std::string(1, '\0'))
      .add("tokenizer.ggml.add_bos_token", kBool, std::string(1, '\0'));
  EXPECT_THAT(encoded(file, "ab a"), ElementsAre("ab", "▁a"));
}

TEST(GgufTokenizer, RefusesScoresThatMeanNothing) {
  std::vector<ScoredToken> tokens = scored_tokens();
  tokens[4].score = NAN;
  expect_gguf_refused(scored_file(tokens), {"tokenizer.ggml.scores[4]", "nan"});
  tokens = scored_tokens();
  tokens[5].token = std::string(1025, 'a');
  expect_gguf_refused(scored_file(tokens), {"token 5", "1025"});
  GgufBuilder few;
  few.add("tokenizer.ggml.model", kText, gguf_text("llama"))
      .add("tokenizer.ggml.tokens", kArray, text_array({"a", "b"}))
      .add("tokenizer.ggml.scores", kArray, gguf_array(kF32, 1, raw(1.0F)));
  expect_gguf_refused(few, {"tokenizer.ggml.scores", "1"});
  GgufBuilder spaces = scored_file();
  spaces.add("tokenizer.ggml.remove_extra_whitespaces", kBool, std::string(1, '\1'));
  expect_gguf_refused(spaces, "tokenizer.ggml.remove_extra_whitespaces is true, expected false");
  GgufBuilder rules = scored_file();
  rules.add("tokenizer.ggml.precompiled_charsmap", kArray, gguf_array(kU8, 1, "x"));
  expect_gguf_refused(
      rules, "tokenizer.ggml.precompiled_charsmap is an array of 1 integers, expected no such key");
}

}  // namespace
}  // namespace heed
