// Chat templates. Files give them in Jinja, a programming language, which jinja/ interprets.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/error.h"
#include "heed/text/tokenizer.h"
#include "text/jinja/syntax.h"
#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {

// Tokens that templates refer to.
struct ChatTokens {
  std::string begin;                                          // bos_token
  std::string end;                                            // eos_token
  std::vector<std::pair<std::string, std::string>> others{};  // by their names; may be empty
};

struct ChatTemplate {
  std::shared_ptr<const jinja::Node> root;  // null: there is none, or it has a problem
  std::optional<FormatError> problem;       // with the template
  ChatTokens tokens;
};

// A conversation as a text, and the places of the messages' contents in it.
struct RenderedChat {
  std::string text;
  std::vector<Span> contents;  // of those that are not empty, in order
};

// Reads a template; an error is kept for when it is rendered.
ChatTemplate read_template(std::string_view source, const ChatTokens& tokens);

// Throws InvalidArgument, naming `function`, and FormatError, as Tokenizer::apply_chat_template()
// documents.
RenderedChat render(const char* function, const ChatTemplate& chat,
                    std::span<const ChatMessage> messages, const ChatOptions& options);

}}}  // namespace heed::v0::text
