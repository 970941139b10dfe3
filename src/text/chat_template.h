// Chat templates. Files give them in Jinja, a programming language; heed recognises whole published
// templates and renders them itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"
#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {

// The format of a conversation. Each message is before_role, the role, before_content, the content,
// behind_content.
struct ChatFormat {
  bool begins = false;  // starts with the token that begins texts
  // the first message, unless the conversation has a system message
  std::optional<std::string> default_system;
  std::string before_role;
  std::string before_content;
  std::string behind_content;
  bool trims = false;           // strips white space around contents
  bool always_prompts = false;  // always ends with the beginning of the answer
};

// Tokens that templates refer to.
struct ChatTokens {
  std::string begin;  // bos_token
  std::string end;    // eos_token
};

struct ChatTemplate {
  enum class Kind {
    kNone,     // the files have no template
    kUnknown,  // the template is not one of those that heed knows
    kKnown,
  } kind = Kind::kNone;
  std::string begin;  // the text before the messages
  ChatFormat format;
  std::string problem;  // the reason why the template is not known
};

// A conversation as a text, and the places of the messages' contents in it.
struct RenderedChat {
  std::string text;
  std::vector<Span> contents;  // of those that are not empty, in order
};

ChatTemplate recognise_template(std::string_view jinja, const ChatTokens& tokens);

// Throws InvalidArgument, naming `function`, as Tokenizer::apply_chat_template() documents.
RenderedChat render(const char* function, const ChatTemplate& chat,
                    std::span<const ChatMessage> messages, const ChatOptions& options);

// Returns the template as Jinja reads it: line breaks are "\n", also those written as an escape in
// a string, and a final line break is removed.
std::string normalised_template(std::string_view jinja);

// Returns the format of a normalised template if it is a known one: the whole text must agree,
// except the default system message. `end` is the text of eos_token.
std::optional<ChatFormat> known_format(std::string_view normalised, const std::string& end);

// Returns the model family that the template resembles; empty if unknown.
std::string_view family_of_template(std::string_view normalised);

}}}  // namespace heed::v0::text
