#include "text/chat_template.h"

#include <fmt/format.h>

#include <array>

#include "heed/error.h"
#include "io/printable.h"
#include "io/unicode.h"
#include "text/code_points.h"

namespace heed::inline v0::text {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// The system message that a ChatML template has between its tokens, e.g.
// '<|im_start|>system\nYou are …<|im_end|>\n': in a string of Jinja the line break may be written
// as \n.
std::optional<std::string> default_system_of(std::string_view jinja) {
  constexpr std::array<std::string_view, 2> kBegins{"<|im_start|>system\n",
                                                    "<|im_start|>system\\n"};
  for (const std::string_view begin : kBegins) {
    std::size_t found = jinja.find(begin);
    for (; found != std::string_view::npos; found = jinja.find(begin, found + 1)) {
      const std::size_t from = found + begin.size();
      const std::size_t end = jinja.find("<|im_end|>", from);
      if (end == std::string_view::npos) continue;
      const std::string_view text = jinja.substr(from, end - from);
      if (!text.empty() && text.find_first_of("'\"{}+\\") == std::string_view::npos) {
        return std::string(text);
      }
    }
  }
  return std::nullopt;
}

// Python's str.strip().
std::string_view trimmed(std::string_view text) {
  const auto is_blank = [](char32_t value) {
    return is_space(value) || (value >= 0x1C && value <= 0x1F);
  };
  while (!text.empty() && is_blank(character_at(text, 0).value)) {
    text.remove_prefix(character_at(text, 0).size);
  }
  while (!text.empty() && is_blank(character_before(text, text.size()).value)) {
    text.remove_suffix(character_before(text, text.size()).size);
  }
  return text;
}

void check_message(const ChatMessage& message) {
  constexpr const char* kFunction = "Tokenizer::apply_chat_template";
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    throw InvalidArgument(
        fmt::format("{}: a message has the role '{}', expected system, user or assistant",
                    kFunction, io::printable(message.role)));
  }
  if (const auto offset = unicode::find_invalid(message.content)) {
    throw InvalidArgument(fmt::format("{}: the content of a message is not valid UTF-8 at byte {}",
                                      kFunction, *offset));
  }
}

std::string render_chat_ml(const ChatTemplate& chat, std::span<const ChatMessage> messages) {
  const auto written = [](std::string_view role, std::string_view content) {
    return fmt::format("<|im_start|>{}\n{}<|im_end|>\n", role, content);
  };
  std::string text;
  const bool says_system = !messages.empty() && messages.front().role == "system";
  if (chat.default_system && !messages.empty() && !says_system) {
    text += written("system", *chat.default_system);
  }
  for (const ChatMessage& message : messages) text += written(message.role, message.content);
  return text + "<|im_start|>assistant\n";
}

std::string render_llama3(const ChatTemplate& chat, std::span<const ChatMessage> messages) {
  std::string text = messages.empty() ? "" : chat.begin;
  for (const ChatMessage& message : messages) {
    text += fmt::format("<|start_header_id|>{}<|end_header_id|>\n\n{}<|eot_id|>", message.role,
                        trimmed(message.content));
  }
  return text + "<|start_header_id|>assistant<|end_header_id|>\n\n";
}

}  // namespace

ChatTemplate recognise_template(std::string_view jinja, std::string_view begin) {
  ChatTemplate chat;
  chat.kind = ChatTemplate::Kind::kUnknown;
  // What these templates do with messages beyond writing them down is not known here.
  const bool is_plain = !contains(jinja, "<think>") && !contains(jinja, "strftime");
  if (is_plain && contains(jinja, "<|im_start|>") && contains(jinja, "<|im_end|>") &&
      !contains(jinja, "trim") && !contains(jinja, "strip")) {
    chat.kind = ChatTemplate::Kind::kChatMl;
    chat.default_system = default_system_of(jinja);
  } else if (is_plain && contains(jinja, "<|start_header_id|>") && contains(jinja, "<|eot_id|>") &&
             contains(jinja, "| trim") && !contains(jinja, "Cutting Knowledge Date")) {
    chat.kind = ChatTemplate::Kind::kLlama3;
    chat.begin = begin;
  } else {
    chat.problem = io::printable(jinja);
  }
  return chat;
}

std::string render(const ChatTemplate& chat, std::span<const ChatMessage> messages) {
  constexpr const char* kFunction = "Tokenizer::apply_chat_template";
  for (const ChatMessage& message : messages) check_message(message);
  switch (chat.kind) {
    case ChatTemplate::Kind::kChatMl:
      return render_chat_ml(chat, messages);
    case ChatTemplate::Kind::kLlama3:
      return render_llama3(chat, messages);
    case ChatTemplate::Kind::kUnknown:
      throw InvalidArgument(fmt::format(
          "{}: the tokenizer has a template that heed does not know, which begins '{}'; "
          "it knows ChatML and Llama 3",
          kFunction, chat.problem));
    case ChatTemplate::Kind::kNone:
      break;
  }
  throw InvalidArgument(fmt::format("{}: the tokenizer has no template", kFunction));
}

}  // namespace heed::inline v0::text
