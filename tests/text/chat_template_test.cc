#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "text/made_tokenizers.h"

namespace heed::text { namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const ChatTokens kTokens{"<s>", "</s>"};

// Templates from models; tests/python/test_chat_templates.py compares their results with Jinja.
constexpr std::string_view kSmolLm2 =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
    "Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}{% endif %}";
constexpr std::string_view kChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\\n' }}{% endif %}";
constexpr std::string_view kLlama3 =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif "
    "%}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}";
constexpr std::string_view kZephyr =
    "{% for message in messages %}\n{% if message['role'] == 'user' %}\n{{ '<|user|>\n' + "
    "message['content'] + eos_token }}\n{% elif message['role'] == 'system' %}\n{{ "
    "'<|system|>\n' + message['content'] + eos_token }}\n{% elif message['role'] == 'assistant' "
    "%}\n{{ '<|assistant|>\n'  + message['content'] + eos_token }}\n{% endif %}\n{% if loop.last "
    "and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}";

std::string rendered(std::string_view jinja, const std::vector<ChatMessage>& messages,
                     bool prompts = true) {
  return render("chat", read_template(jinja, kTokens), messages, {.add_generation_prompt = prompts})
      .text;
}

TEST(ChatTemplate, ChatMlSaysItsSystemMessageUnlessThereIsOne) {
  const std::vector<ChatMessage> hello{{"user", " Hi "}};
  EXPECT_EQ(rendered(kSmolLm2, hello),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
  const std::vector<ChatMessage> told{{"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Yes"}};
  EXPECT_EQ(rendered(kSmolLm2, told, false),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nYes<|im_end|>\n");
  EXPECT_EQ(rendered(kChatMl, hello), "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, Llama3BeginsOnceAndTrims) {
  const std::vector<ChatMessage> messages{{"system", "Be kind."}, {"user", "\n Hi \t"}};
  EXPECT_EQ(rendered(kLlama3, messages, false),
            "<s><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplate, ZephyrEndsMessagesByTheTokenOfItsTokenizer) {
  EXPECT_EQ(rendered(kZephyr, {{"user", "Hi"}}), "<|user|>\nHi</s>\n<|assistant|>\n");
}

TEST(ChatTemplate, ATokenBeforeAllIsHonoured) {
  for (const char* way : {"{{bos_token}}", "{{ bos_token }}", "{{- bos_token }}"}) {
    EXPECT_EQ(rendered(way + std::string(kChatMl), {{"user", "Hi"}}, false),
              "<s><|im_start|>user\nHi<|im_end|>\n");
  }
}

TEST(ChatTemplate, AreTheSameHoweverTheyWriteALineBreak) {
  std::string crlf(kZephyr);
  for (std::size_t at = 0; (at = crlf.find('\n', at)) != std::string::npos; at += 2) {
    crlf.replace(at, 1, "\r\n");
  }
  EXPECT_EQ(rendered(crlf + "\r\n", {{"user", "Hi"}}), "<|user|>\nHi</s>\n<|assistant|>\n");
}

void expect_problem(const std::string& jinja, const std::string& problem) {
  EXPECT_THAT(
      [&] {
        rendered(jinja, {{"user", "Hi"}});
      },
      ThrowsMessage<FormatError>(HasSubstr(problem)))
      << jinja.substr(0, 100);
}

// Loading such a template works: only rendering fails.
TEST(ChatTemplate, WhatIsNotKnownIsNamedWithItsLine) {
  expect_problem("a\n{{ messages | groupby('role') }}", "line 2: the filter 'groupby'");
  expect_problem("{{ 1 is odious }}", "line 1: the test 'odious'");
  expect_problem("{% include 'a' %}", "the tag 'include'");
  expect_problem("{{ 'a'.zfill(3) }}", "the method 'zfill'");
  expect_problem("{{ messages.append(1) }}", "a method that changes a list");
  expect_problem("{{ '{}'.format(1) }}", "formats it");
  expect_problem("{{ 'a' | trim(1, 2) }}", "'trim' takes 1 arguments, not 2");
  expect_problem("{{ '0x1F' | int(base=16) }}", "'int' has no argument 'base' left");
  expect_problem("{{ '<' + ('a' | safe) }}", "the filter 'safe' within an expression");
  expect_problem("{{ range(3) }}", "a range printed");
  expect_problem("{% if true %}", "without endif");
  expect_problem("{{ absent.name }}", "'absent' is undefined");
  expect_problem("{{ 1 + 'a' }}", "'+' between an integer and a string");
}

TEST(ChatTemplate, HostileTemplatesEndWithAnError) {
  const auto many = [](const std::string& part, int count) {
    std::string text;
    for (int i = 0; i < count; ++i) text += part;
    return text;
  };
  expect_problem("{% for i in range(10**9) %}a{% endfor %}", "range()");
  expect_problem(
      "{% set r = range(99999) %}{% for i in r %}{% for j in r %}{% endfor %}{% endfor %}",
      "too many steps");
  expect_problem("{{ 'a' * 10**10 }}", "too long");
  expect_problem(
      "{% set n = namespace(s='aaaaaaaa') %}{% for i in range(99) %}"
      "{% set n.s = n.s + n.s %}{% endfor %}",
      "to");
  expect_problem("{{ " + many("(", 10000) + "1" + many(")", 10000) + " }}", "nested too deeply");
  expect_problem("{{ 1" + many(" + 1", 10000) + " }}", "nested too deeply");
  expect_problem(many("{% if 1 %}", 10000), "nested too deeply");
  expect_problem("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested too deeply");
  expect_problem(
      "{% set n = namespace(x=[]) %}{% for i in range(999) %}{% set n.x = [n.x] %}"
      "{% endfor %}",
      "nested");
  expect_problem("{% set n = namespace() %}{% set n.n = n %}", "a namespace");
}

TEST(ChatTemplate, ARefusalCarriesItsMessage) {
  EXPECT_THAT(
      [] {
        rendered("{{ raise_exception('Be kind: ' + messages[0].role) }}", {{"user", "Hi"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("refuses the conversation: Be kind: user")));
}

TEST(ChatTemplate, SnippetsAreEvaluated) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"{{ 7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }}", "3 2 3.5 8"},
      {"{{ [1, 'a', none, true] }}", "[1, 'a', None, True]"},
      {"{{ {'a': [1, 2.0]} | tojson }}", "{\"a\": [1, 2.0]}"},
      {"{% for a, b in {'x': 1}.items() %}{{ a ~ b ~ loop.last }}{% endfor %}", "x1True"},
      {"{% for i in range(9) if i is odd %}{% if i > 5 %}{% break %}{% endif %}{{ i }}{% else "
       "%}none{% endfor %}",
       "135"},
      {"{% macro m(a, b='!') %}{{ a }}{{ b }}{% endmacro %}{{ m('x') }}{{ m('y', b='?') }}",
       "x!y?"},
      {"{% set n = namespace(k=1) %}{% for i in [1, 2] %}{% set n.k = n.k + i %}{% endfor %}"
       "{{ n.k }}",
       "4"},
      {"{% set x %}a{{ 1 }}{% endset %}{{ x | upper }}", "A1"},
      {"{{ 'abcd'[1:3] }}{{ [1, 2, 3][::-1] }}", "bc[3, 2, 1]"},
      {"{{ ['b', 'a'] | sort | join(',') }}", "a,b"},
      {"{{ messages | map(attribute='content') | list }}", "['Hi']"},
      {"{{ 'x' if absent }}{{ absent }}.", "."},
      {"a\n  {% if true %}\n  b\n  {%- endif %}\n", "a\n  b"},
      {"{% generation %}a{% endgeneration %}", "a"}};
  for (const auto& [jinja, expected] : cases) {
    EXPECT_EQ(rendered(jinja, {{"user", "Hi"}}), expected) << jinja;
  }
}

TEST(ChatTemplate, TextOfMessagesIsFollowedThroughOperations) {
  const RenderedChat chat =
      render("chat",
             read_template("<{% set c = messages[0].content.split(' ')[1] | upper %}{{ '[' + c ~ "
                           "']' }}{{ messages[0] | tojson }}>",
                           kTokens),
             std::vector<ChatMessage>{{"user", "no yes"}}, {});
  EXPECT_EQ(chat.text, "<[YES]{\"role\": \"user\", \"content\": \"no yes\"}>");
  ASSERT_EQ(chat.contents.size(), 2u);
  EXPECT_EQ(chat.text.substr(chat.contents[0].begin, 3), "YES");
  EXPECT_EQ(chat.text.substr(chat.contents[1].begin, 6), "no yes");
}

TEST(ChatTemplate, MutatedTemplatesEndWithTextOrAnError) {
  const std::string source =
      "{%- macro m(a, b=2) %}{{ a[::b] | trim }}{% endmacro %}{% for x in messages if x.role in "
      "['user'] %}{{ loop.index0 ~ m(x['content'], b=1) }}{% else %}{{ 1 // 2 }}{% endfor %}";
  std::uint32_t state = 1;
  const auto next = [&] { return (state = state * 1664525u + 1013904223u) >> 8; };
  for (int i = 0; i < 2000; ++i) {
    std::string changed = source;
    for (std::uint32_t n = next() % 4 + 1; n > 0; --n) {
      const std::size_t at = next() % changed.size();
      const std::size_t size = next() % 8;
      const std::string part = source.substr(next() % source.size(), next() % 8);
      changed.replace(at, size, part);
      if (changed.empty()) changed = "{";
    }
    try {
      rendered(changed, {{"user", "Hi"}});
    } catch (const FormatError&) {
    } catch (const InvalidArgument&) {
    }
  }
}

TEST(ChatTemplate, WhatIsNoConversationIsRefused) {
  EXPECT_THAT(
      [] {
        render("chat", {}, std::vector<ChatMessage>{{"user", "Hi"}}, {});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("chat: the tokenizer has no template")));
  EXPECT_THAT(
      [] {
        rendered(kChatMl, {{"writer", "1"}});
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("has the role 'writer', expected system, user, assistant, tool")));
  EXPECT_THAT([] { rendered(kChatMl, {}); },
              ThrowsMessage<InvalidArgument>(HasSubstr("there are no messages")));
  EXPECT_THAT(
      [] {
        rendered(kChatMl, {{"user", "\xFF"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("not valid UTF-8 at byte 0")));
}

// A byte-level tokenizer with ChatML's tokens, the last of which is matched after normalisation.
std::unique_ptr<const Tokenizer> chat_tokenizer() {
  std::string json = testing_support::byte_level_json(R"(,
    "normalizer": {"type": "NFC"},
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false})");
  const std::string first = R"({"id": 262)";
  json.insert(json.find(first),
              R"({"id": 264, "content": "<|im_start|>", "special": true},
                 {"id": 265, "content": "<|im_end|>", "special": true, "normalized": true},
                 {"id": 266, "content": "d<|im_end", "special": true},)");
  std::string jinja;
  for (const char c : kChatMl) jinja += c == '\\' ? "\\\\" : std::string(1, c);
  return testing_support::tokenizer_of(json, R"({"chat_template": ")" + jinja + R"("})");
}

TEST(EncodedChat, TokensOfTheTemplateAreSpecialAndThoseOfMessagesAreNot) {
  const auto tokenizer = chat_tokenizer();
  const std::vector<ChatMessage> messages{{"user", "the<|im_end|><|end|><tool>the"}};
  const std::vector<std::string> tokens =
      tokenizer->tokens(tokenizer->encode_chat(messages, {.add_generation_prompt = false}).ids);
  std::string shown;
  for (const std::string& token : tokens) shown += (shown.empty() ? "" : " ") + token;
  EXPECT_EQ(shown,
            "<|im_start|> u s e r Ċ the < | i m _ e n d | > < | e n d | > <tool> the <|im_end|> Ċ");
}

// Message and template are one text for the merges, and ranges refer to that text.
TEST(EncodedChat, IsOneText) {
  const auto tokenizer = chat_tokenizer();
  const std::vector<ChatMessage> messages{{"user", "d"}, {"user", ""}, {"user", " the"}};
  const Encoding chat = tokenizer->encode_chat(messages);
  const std::string text = tokenizer->apply_chat_template(messages);
  std::string joined;
  for (const auto& [begin, end] : chat.ranges) {
    joined += text.substr(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(tokenizer->decode(chat.ids, {.skip_special_tokens = false}), text);
  // "d<|im_end" begins in a message.
  EXPECT_EQ(std::count(chat.ids.begin(), chat.ids.end(), 265), 3);
}

}  // namespace
}  // namespace heed::text
