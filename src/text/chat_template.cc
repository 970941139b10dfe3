#include "text/chat_template.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/unicode.h"
#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

// As Python's str.strip().
std::string_view stripped(std::string_view text) {
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

void check_message(const char* function, const ChatMessage& message) {
  if (message.role != "system" && message.role != "user" && message.role != "assistant") {
    throw InvalidArgument(
        fmt::format("{}: a message has the role '{}', expected system, user or assistant", function,
                    io::printable(message.role)));
  }
  if (const auto offset = unicode::find_invalid(message.content)) {
    throw InvalidArgument(fmt::format("{}: the content of a message is not valid UTF-8 at byte {}",
                                      function, *offset));
  }
}

void check_known(const char* function, const ChatTemplate& chat) {
  if (chat.kind == ChatTemplate::Kind::kNone) {
    throw InvalidArgument(fmt::format("{}: the tokenizer has no template", function));
  }
  if (chat.kind == ChatTemplate::Kind::kUnknown) {
    throw InvalidArgument(fmt::format(
        "{}: the tokenizer's template {}; heed renders ChatML and the templates of SmolLM2, Qwen2, "
        "Qwen2.5, Llama 3, TinyLlama and Zephyr, each as it was published: for another one give "
        "the conversation as a text, in the words that the model expects",
        function, chat.problem));
  }
}

// Removes a leading token bos_token from the template; false if there is none.
bool takes_begin(std::string_view& jinja) {
  constexpr std::array<std::string_view, 4> kWays{"{{bos_token}}", "{{ bos_token }}",
                                                  "{{- bos_token }}", "{{- bos_token -}}"};
  const auto* const way = std::find_if(
      kWays.begin(), kWays.end(), [&](std::string_view begin) { return jinja.starts_with(begin); });
  if (way == kWays.end()) return false;
  jinja.remove_prefix(way->size());
  return true;
}

}  // namespace

ChatTemplate recognise_template(std::string_view jinja, const ChatTokens& tokens) {
  const std::string normalised = normalised_template(jinja);
  std::string_view rest = normalised;
  ChatTemplate chat;
  if (takes_begin(rest)) chat.begin = tokens.begin;
  if (auto format = known_format(rest, tokens.end)) {
    chat.kind = ChatTemplate::Kind::kKnown;
    chat.format = std::move(*format);
    if (chat.format.begins) chat.begin += tokens.begin;
    return chat;
  }
  chat.kind = ChatTemplate::Kind::kUnknown;
  const std::string_view family = family_of_template(rest);
  chat.problem =
      fmt::format("{}, which begins '{}'",
                  family.empty() ? "is none that heed knows"
                                 : fmt::format("looks like {}, which heed lacks", family),
                  io::printable(jinja));
  return chat;
}

RenderedChat render(const char* function, const ChatTemplate& chat,
                    std::span<const ChatMessage> messages, const ChatOptions& options) {
  check_known(function, chat);
  if (messages.empty()) {
    throw InvalidArgument(fmt::format("{}: there are no messages, expected at least 1", function));
  }
  for (const ChatMessage& message : messages) check_message(function, message);
  const ChatFormat& format = chat.format;
  RenderedChat rendered{chat.begin, {}};
  std::string& text = rendered.text;
  const auto begin_message = [&](std::string_view role) {
    text.append(format.before_role).append(role).append(format.before_content);
  };
  if (format.default_system && messages.front().role != "system") {
    begin_message("system");
    text.append(*format.default_system).append(format.behind_content);
  }
  for (const auto& [role, content] : messages) {
    begin_message(role);
    const std::size_t begin = text.size();
    text += format.trims ? stripped(content) : std::string_view(content);
    if (begin < text.size()) rendered.contents.push_back({begin, text.size()});
    text += format.behind_content;
  }
  if (options.add_generation_prompt || format.always_prompts) begin_message("assistant");
  return rendered;
}

}}}  // namespace heed::v0::text
