#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "heed/error.h"

namespace heed::text {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// SmolLM2's, as its files have it.
constexpr std::string_view kSmolLm2 =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ "
    "'<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
    "Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + message['role'] + '\n' + "
    "message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ "
    "'<|im_start|>assistant\n' }}{% endif %}";
constexpr std::string_view kPlainChatMl =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] "
    "+ '<|im_end|>' + '\\n'}}{% endfor %}{{ '<|im_start|>assistant\\n' }}";
constexpr std::string_view kLlama3 =
    "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = "
    "'<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim "
    "+ '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif "
    "%}{{ content }}{% endfor %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}";

TEST(ChatTemplate, ChatMlSaysItsSystemMessageUnlessThereIsOne) {
  const ChatTemplate chat = recognise_template(kSmolLm2, "<|im_start|>");
  const std::vector<ChatMessage> hello{{"user", " Hi "}};
  EXPECT_EQ(render(chat, hello),
            "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging "
            "Face<|im_end|>\n<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
  const std::vector<ChatMessage> told{{"system", "Be kind."}, {"user", "Hi"}, {"assistant", "Yes"}};
  EXPECT_EQ(render(chat, told),
            "<|im_start|>system\nBe kind.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\nYes<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(recognise_template(kPlainChatMl, ""), hello),
            "<|im_start|>user\n Hi <|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplate, Llama3BeginsOnceAndTrims) {
  const ChatTemplate chat = recognise_template(kLlama3, "<|begin_of_text|>");
  const std::vector<ChatMessage> messages{{"system", "Be kind."}, {"user", "\n Hi \t"}};
  EXPECT_EQ(render(chat, messages),
            "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe kind.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplate, WhatIsNotKnownIsRefused) {
  const std::vector<ChatMessage> hello{{"user", "Hi"}};
  EXPECT_THAT([&] { (void)render(recognise_template("[INST] {{ x }}", ""), hello); },
              ThrowsMessage<InvalidArgument>(HasSubstr("which begins '[INST] {{ x }}'")));
  EXPECT_THAT([&] { (void)render({}, hello); },
              ThrowsMessage<InvalidArgument>(HasSubstr("the tokenizer has no template")));
  const std::vector<ChatMessage> tool{{"tool", "1"}};
  EXPECT_THAT([&] { (void)render(recognise_template(kPlainChatMl, ""), tool); },
              ThrowsMessage<InvalidArgument>(
                  HasSubstr("has the role 'tool', expected system, user or assistant")));
}

}  // namespace
}  // namespace heed::text
