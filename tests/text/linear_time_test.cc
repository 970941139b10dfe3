// Text readers take linear time for any contents: half a megabyte of one character takes moments. A
// reader that rescans the text for each character would exceed the time limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heed/tasks/vocabulary.h"
#include "heed/text/characters.h"
#include "heed/text/word_tokenizer.h"
#include "io/json_value.h"
#include "text/chat_template.h"
#include "text/made_tokenizers.h"
#include "text/normalizers.h"
#include "text/split_patterns.h"

namespace heed::text { namespace {

using testing_support::tokenizer_of;

constexpr std::size_t kBytes = std::size_t{1} << 19;

std::string repeated(std::string_view part) {
  std::string text;
  while (text.size() < kBytes) text += part;
  return text;
}

constexpr std::array<std::string_view, 16> kParts{
    " ",      "\n", "\r\n",    "a",  "'",
    "-",      "1",  "<",       "é",  "e\u0301",
    "\u0301", "猫", "👩‍", "🇩🇪", std::string_view("\0", 1),
    "a "};

// With the pattern of Llama 3, after NFC.
std::string composing_json() {
  std::string pattern;
  for (const char c : split_patterns::kLlama3) {
    pattern += c == '\\' ? "\\\\" : std::string(1, c);
  }
  return testing_support::byte_level_json(R"(, "normalizer": {"type": "NFC"},
      "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
        {"type": "Split", "behavior": "Isolated", "invert": false, "pattern": {"Regex": ")" +
                                          pattern + R"("}},
        {"type": "ByteLevel", "add_prefix_space": true, "use_regex": true}]})");
}

// Returns every tokenizer that splits texts.
std::vector<std::unique_ptr<const Tokenizer>> tokenizers() {
  std::vector<std::unique_ptr<const Tokenizer>> all;
  all.push_back(tokenizer_of(testing_support::bert_json()));
  all.push_back(tokenizer_of(testing_support::byte_level_json()));
  all.push_back(tokenizer_of(composing_json()));
  all.push_back(tokenizer_of(testing_support::unigram_json(R"(, "normalizer": {"type": "Sequence",
      "normalizers": [{"type": "Nmt"}, {"type": "Strip"}, {"type": "Replace", "content": " ",
                                                          "pattern": {"Regex": " {2,}"}}]})")));
  // Added tokens that take white space, as they are and where it is taken off ranges.
  const std::string bytes =
      R"(, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})";
  const std::string trimming =
      R"(, "post_processor": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true})";
  for (const std::string& parts : {bytes, bytes + trimming}) {
    std::string stripping = testing_support::byte_level_json(parts);
    const std::string last = R"("<tool>", "special": false)";
    stripping.insert(stripping.find(last) + last.size(), R"(, "lstrip": true, "rstrip": true},
        {"id": 264, "content": "\n", "rstrip": true, "normalized": false},
        {"id": 265, "content": " ", "single_word": true, "lstrip": true, "rstrip": true)");
    all.push_back(tokenizer_of(stripping));
  }
  all.push_back(std::make_unique<const WordTokenizer>("the cat"));
  return all;
}

TEST(LinearTime, OfTokenizers) {
  for (const auto& tokenizer : tokenizers()) {
    for (const std::string_view part : kParts) {
      const Encoding encoding = tokenizer->encode(repeated(part));
      EXPECT_EQ(encoding.ids.size(), encoding.ranges.size());
      tokenizer->decode(encoding.ids);
    }
  }
}

TEST(LinearTime, OfVocabularies) {
  for (const std::string_view part : kParts) {
    const std::vector<std::string> texts{repeated(part)};
    EXPECT_GE(Characters(texts[0]).short_ids(texts[0]).size(), kBytes / 8);
    for (const tasks::Units units : {tasks::Units::kWords, tasks::Units::kCharacters}) {
      EXPECT_GE(tasks::Vocabulary(texts, units).ids(texts[0]).size(), 0U);
    }
  }
}

TEST(LinearTime, OfNormalizers) {
  for (const std::string_view part : kParts) {
    const std::string text = repeated(part);
    for (const UnicodeForm form : {UnicodeForm{}, {true, false}, {false, true}, {true, true}}) {
      EXPECT_GT(normalize_unicode(AlignedText(text, 0), form).size(), 0U);
    }
    normalize_bert(AlignedText(text, 0), {});
    replace_all(AlignedText(text, 0), std::string(part), "aa");
  }
}

TEST(LinearTime, OfChats) {
  const ChatTemplate worked = read_template(
      "{% set m = messages[0].content %}{{ m | trim }}{{ m.strip('a-') }}{{ m | upper }}"
      "{{ m | tojson }}{{ m.split('<') | join('<') }}{{ m[::-1] | length }}{{ m.rfind('aab') }}",
      {});
  for (const std::string_view part : kParts) {
    std::string text;
    while (text.size() < kBytes / 8) text += part;  // each character is worked on several times
    const std::vector<ChatMessage> messages{{"user", text}};
    EXPECT_GT(render("chat", worked, messages, {}).text.size(), kBytes / 8);
    read_template(repeated(part), {});
  }
  for (const char* part : {"{{'", "{% ", "{#", "{{ a }}", "{{ 1 + ", "{% if ", "{%- raw %}"}) {
    read_template(repeated(part), {});
  }
}

TEST(LinearTime, OfDecodersAndTheirStreams) {
  std::string pattern(1000, 'a');
  pattern += 'b';
  for (const Decoder& decoder :
       {replacing_decoder(pattern, ""), stripping_decoder({"a", 1'000'000'000, 1'000'000'000}),
        word_piece_decoder(pattern, true), byte_level_decoder(), byte_fallback_decoder()}) {
    Decoding decoding(decoders_of({fusing_decoder(), decoder}));
    std::string text;
    for (std::size_t i = 0; i < kBytes; ++i) {
      decoding.add("a");
      text += decoding.take();
    }
    decoding.finish();
    EXPECT_LE((text + decoding.take()).size(), kBytes);
  }
}

TEST(LinearTime, OfJson) {
  for (const char* part : {"1,", "\"a\",", "{},", "[[]],", "{\"a\":{}},"}) {
    const std::string text = "[" + repeated(part) + "0]";
    EXPECT_GT(io::parse_json(text, "t").items.size(), 1000U);
  }
  EXPECT_EQ(io::parse_json("\"" + repeated("\\n") + "\"", "t").text.size(), kBytes / 2);
}

}  // namespace
}  // namespace heed::text
