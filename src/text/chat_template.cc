#include "text/chat_template.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "heed/core/error.h"
#include "io/unicode.h"
#include "text/jinja/evaluator.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

using jinja::MarkedText;
using jinja::Value;

// Texts in `json` come from outside.
Value value_from(const char* function, const std::string& json, const char* source) {
  try {
    return jinja::value_from_json(json, source);
  } catch (const FormatError& error) {
    throw InvalidArgument(fmt::format("{}: {}", function, error.what()));
  }
}

// Roles are not foreign text, as templates make special tokens of them: <|user|>.
Value role_value(const char* function, std::string_view role) {
  constexpr std::array<std::string_view, 7> kRoles{"system",    "user",     "assistant", "tool",
                                                   "developer", "function", "ipython"};
  if (std::find(kRoles.begin(), kRoles.end(), role) == kRoles.end()) {
    throw InvalidArgument(fmt::format("{}: a message has the role '{}', expected {}", function,
                                      io::printable(role), fmt::join(kRoles, ", ")));
  }
  return jinja::string(role);
}

Value content_value(const char* function, const std::string& content) {
  if (const auto offset = unicode::find_invalid(content)) {
    throw InvalidArgument(fmt::format("{}: the content of a message is not valid UTF-8 at byte {}",
                                      function, *offset));
  }
  return jinja::string(MarkedText::foreign(content));
}

// As transformers does, a text of reasoning has all the names that templates read it by.
Value with_reasoning_names(const Value& message) {
  constexpr std::array<std::string_view, 3> kNames{"reasoning_content", "thinking", "reasoning"};
  const Value* reasoning = nullptr;
  for (const std::string_view name : kNames) {
    const Value* const found = jinja::member(message, name);
    if (reasoning == nullptr && found != nullptr && !found->is(Value::Kind::kNone)) {
      reasoning = found;
    }
  }
  if (reasoning == nullptr) return message;
  std::vector<Value> keys = message.object->keys;
  std::vector<Value> items = message.object->items;
  if (jinja::member(message, "thinking") == nullptr) {
    keys.insert(keys.begin(), jinja::string("thinking"));
    items.insert(items.begin(), *reasoning);
  }
  std::size_t at = 0;
  while (at < keys.size() && keys[at].bytes() != "reasoning_content") ++at;
  if (at == keys.size()) {
    keys.push_back(jinja::string("reasoning_content"));
    items.emplace_back();
  }
  items[at] = *reasoning;
  return jinja::dictionary(std::move(keys), std::move(items));
}

Value value_of(const char* function, const ChatMessage& message) {
  if (message.json.empty()) {
    return jinja::dictionary(
        {jinja::string("role"), jinja::string("content")},
        {role_value(function, message.role), content_value(function, message.content)});
  }
  const Value value = value_from(function, message.json, "a message");
  const bool is_object = value.is(Value::Kind::kDict);
  const Value* const role = is_object ? jinja::member(value, "role") : nullptr;
  if (role == nullptr || !role->is_string()) {
    throw InvalidArgument(
        fmt::format("{}: a message in JSON is no object with the text 'role'", function));
  }
  value.object->items[static_cast<std::size_t>(role - value.object->items.data())] =
      role_value(function, role->bytes());
  return with_reasoning_names(value);
}

Value value_of(const char* function, std::span<const ChatMessage> messages) {
  std::vector<Value> all;
  all.reserve(messages.size());
  for (const ChatMessage& message : messages) all.push_back(value_of(function, message));
  return jinja::sequence(Value::Kind::kList, std::move(all));
}

void add_variables(const char* function, const std::string& json, jinja::Variables& variables) {
  const Value others = value_from(function, json, "the variables of the template");
  if (!others.is(Value::Kind::kDict)) {
    throw InvalidArgument(
        fmt::format("{}: the variables of the template are not a JSON object", function));
  }
  for (std::size_t i = 0; i < others.object->keys.size(); ++i) {
    const std::string& name = others.object->keys[i].bytes();
    const auto known = std::find_if(variables.begin(), variables.end(),
                                    [&](const auto& variable) { return variable.first == name; });
    if (name == "messages" || name == "tools" || name == "add_generation_prompt") {
      throw InvalidArgument(fmt::format(
          "{}: the variables of the template have '{}', which is an argument of its own", function,
          name));
    }
    if (known != variables.end()) {
      known->second = others.object->items[i];
    } else {
      variables.emplace_back(name, others.object->items[i]);
    }
  }
}

jinja::Variables variables_of(const char* function, const ChatTemplate& chat,
                              std::span<const ChatMessage> messages, const ChatOptions& options) {
  jinja::Variables variables{
      {"messages", value_of(function, messages)},
      {"tools", jinja::none()},
      {"documents", jinja::none()},
      {"add_generation_prompt", jinja::boolean(options.add_generation_prompt)}};
  if (!options.tools.empty()) {
    variables[1].second = value_from(function, options.tools, "the tools");
    if (!variables[1].second.is(Value::Kind::kList)) {
      throw InvalidArgument(fmt::format("{}: the tools are not a JSON array", function));
    }
  }
  const auto add_token = [&](const std::string& name, const std::string& token) {
    if (!token.empty()) variables.emplace_back(name, jinja::string(token));
  };
  add_token("bos_token", chat.tokens.begin);
  add_token("eos_token", chat.tokens.end);
  for (const auto& [name, token] : chat.tokens.others) add_token(name, token);
  if (!options.variables.empty()) add_variables(function, options.variables, variables);
  return variables;
}

// More for longer conversations, so that it is the template that is bounded.
std::int64_t steps_for(std::span<const ChatMessage> messages, const ChatOptions& options) {
  std::size_t bytes = options.tools.size() + options.variables.size();
  for (const ChatMessage& message : messages) {
    bytes += message.content.size() + message.json.size() + 1000;
  }
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
  try {
    jinja::Evaluator evaluator(variables_of(function, chat, messages, options),
                               steps_for(messages, options));
    const jinja::MarkedText text = evaluator.run(*chat.root);
    return {text.bytes(), text.marks()};
  } catch (const jinja::Refusal& refusal) {
    throw InvalidArgument(fmt::format("{}: the template refuses the conversation: {}", function,
                                      unicode::legible(refusal.message)));
  }
}

}}}  // namespace heed::v0::text
