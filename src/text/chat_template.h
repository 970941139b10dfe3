// Templates of conversations. Files give them in Jinja, a programming language; heed knows whole
// templates, as they were published, and renders these itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"
#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {

// How the messages of a conversation are written, one behind the other: before_role, the role,
// before_content, the content, behind_content.
struct ChatFormat {
  bool begins = false;                        // with the token that begins texts
  std::optional<std::string> default_system;  // said first unless the conversation says another
  std::string before_role;
  std::string before_content;
  std::string behind_content;
  bool trims = false;           // white space around contents goes
  bool always_prompts = false;  // the answer's beginning stands at the end in any case
};

// Tokens that templates name.
struct ChatTokens {
  std::string begin;  // bos_token
  std::string end;    // eos_token
};

struct ChatTemplate {
  enum class Kind {
    kNone,     // the files have no template
    kUnknown,  // one that heed does not know
    kKnown,
  } kind = Kind::kNone;
  std::string begin;  // the text before all
  ChatFormat format;
  std::string problem;  // why the template is not known
};

// A conversation as a text, and where in it the contents of messages stand.
struct RenderedChat {
  std::string text;
  std::vector<Span> contents;  // of those that are not empty, in their order
};

ChatTemplate recognise_template(std::string_view jinja, const ChatTokens& tokens);

// Throws InvalidArgument, in the name of `function`, as Tokenizer::apply_chat_template() says.
RenderedChat render(const char* function, const ChatTemplate& chat,
                    std::span<const ChatMessage> messages, const ChatOptions& options);

}}}  // namespace heed::v0::text
