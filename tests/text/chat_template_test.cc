#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "text/made_tokenizers.h"

namespace heed::text { namespace {

using testing::AllOf;
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
  return render("chat", recognise_template(jinja, kTokens), messages,
                {.add_generation_prompt = prompts})
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

// A template with any difference is refused; nothing is guessed.
TEST(ChatTemplate, WhatIsNotKnownIsRefused) {
  const auto refused = [](std::string jinja, const std::string& part, const std::string& other) {
    const std::size_t at = jinja.find(part);
    ASSERT_NE(at, std::string::npos) << part;
    jinja.replace(at, part.size(), other);
    EXPECT_THAT(
        [&] {
          rendered(jinja, {{"user", "Hi"}});
        },
        ThrowsMessage<InvalidArgument>(HasSubstr("a ChatML of its own, which heed lacks")));
  };
  const std::string chat_ml(kChatMl);
  refused(chat_ml, "<|im_end|>' + '\\n'", "<|im_end|>'");
  refused(chat_ml, "message['content']", "message['content'] | trim");
  refused(chat_ml, "<|im_start|>assistant\\n'", "<|im_start|>assistant'");
  refused(chat_ml, "{% for", "{% set default = 'Be kind.' %}{% for");
  refused(chat_ml, "{% endif %}", "{% else %}{{ eos_token }}{% endif %}");
  refused(chat_ml, "{% for", "  {% for");
  refused(std::string(kSmolLm2), "Face<", "Face' + name + '<");
  EXPECT_THAT(
      [] {
        rendered("{{ '<|im_start|>user<|im_sep|>' }}", {{"user", "Hi"}});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("Phi-4's, which heed lacks")));
  EXPECT_THAT(
      [] {
        rendered("{{ messages }}", {{"user", "Hi"}});
      },
      ThrowsMessage<InvalidArgument>(AllOf(HasSubstr("which begins '{{ messages }}'"),
                                           HasSubstr("TinyLlama"),
                                           HasSubstr("give the conversation as a text"))));
}

TEST(ChatTemplate, WhatIsNoConversationIsRefused) {
  EXPECT_THAT(
      [] {
        render("chat", {}, std::vector<ChatMessage>{{"user", "Hi"}}, {});
      },
      ThrowsMessage<InvalidArgument>(HasSubstr("chat: the tokenizer has no template")));
  EXPECT_THAT(
      [] {
        rendered(kChatMl, {{"tool", "1"}});
      },
      ThrowsMessage<InvalidArgument>(
          HasSubstr("has the role 'tool', expected system, user or assistant")));
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
