#include "text/chat_template.h"

#include <fmt/format.h>


#include "core/printable.h"
#include "heed/core/error.h"
#include "io/unicode.h"
#include "text/jinja/evaluator.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

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

jinja::Value value_of(std::span<const ChatMessage> messages) {
  std::vector<jinja::Value> all;
  for (const ChatMessage& message : messages) {
    all.push_back(jinja::dictionary(
        {jinja::string("role"), jinja::string("content")},
        {jinja::string(message.role),
         jinja::string(jinja::MarkedText::foreign(message.content))}));
  }
  return jinja::sequence(jinja::Value::Kind::kList, std::move(all));
}

jinja::Variables variables_of(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                              const ChatOptions& options) {
  jinja::Variables variables{
      {"messages", value_of(messages)},
      {"tools", jinja::none()},
      {"documents", jinja::none()},
      {"add_generation_prompt", jinja::boolean(options.add_generation_prompt)}};
  if (!options.tools.empty()) {
    variables[1].second = jinja::value_from_json(options.tools, "the tools");
  }
  if (!chat.tokens.begin.empty()) {
    variables.emplace_back("bos_token", jinja::string(chat.tokens.begin));
  }
  if (!chat.tokens.end.empty()) {
    variables.emplace_back("eos_token", jinja::string(chat.tokens.end));
  }
  if (options.variables.empty()) return variables;
  const jinja::Value others = jinja::value_from_json(options.variables, "the variables");
  if (!others.is(jinja::Value::Kind::kDict)) {
    throw InvalidArgument("ChatOptions::variables: expected a JSON object");
  }
  for (std::size_t i = 0; i < others.object->keys.size(); ++i) {
    variables.emplace_back(others.object->keys[i].bytes(), others.object->items[i]);
  }
  return variables;
}

// More for longer conversations, so that it is the template that is bounded.
std::int64_t steps_for(std::span<const ChatMessage> messages, const ChatOptions& options) {
  std::size_t bytes = options.tools.size() + options.variables.size();
  for (const ChatMessage& message : messages) bytes += message.content.size() + 1000;
  return jinja::kMaxSteps + static_cast<std::int64_t>(bytes) * 16;
}

}  // namespace

ChatTemplate read_template(std::string_view source, const ChatTokens& tokens) {
  ChatTemplate chat;
  chat.tokens = tokens;
  try {
    chat.root = jinja::parse_template(source);
  } catch (const FormatError& error) {
    chat.problem = error;
  }
  return chat;
}

RenderedChat render(const char* function, const ChatTemplate& chat,
                    std::span<const ChatMessage> messages, const ChatOptions& options) {
  if (chat.problem) throw FormatError(*chat.problem);
  if (chat.root == nullptr) {
    throw InvalidArgument(fmt::format("{}: the tokenizer has no template", function));
  }
  if (messages.empty()) {
    throw InvalidArgument(fmt::format("{}: there are no messages, expected at least 1", function));
  }
  for (const ChatMessage& message : messages) check_message(function, message);
  try {
    jinja::Evaluator evaluator(variables_of(chat, messages, options),
                               steps_for(messages, options));
    const jinja::MarkedText text = evaluator.run(*chat.root);
    return {text.bytes(), text.marks()};
  } catch (const jinja::Refusal& refusal) {
    throw InvalidArgument(fmt::format("{}: the template refuses the conversation: {}", function,
                                      unicode::legible(refusal.message)));
  }
}

}}}  // namespace heed::v0::text
