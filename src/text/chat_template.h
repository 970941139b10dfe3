// Templates of conversations. Files give them in Jinja, a programming language; heed knows the ones
// below by what they contain and renders them itself.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "heed/text/tokenizer.h"

namespace heed::inline v0::text {

struct ChatTemplate {
  enum class Kind {
    kNone,     // the files have no template
    kUnknown,  // one that heed does not know
    kChatMl,   // <|im_start|>role\n…<|im_end|>\n
    kLlama3,   // <|start_header_id|>role<|end_header_id|>\n\n…<|eot_id|>
  } kind = Kind::kNone;
  std::optional<std::string> default_system;  // said first unless the conversation says another
  std::string begin;                          // the token before all
  std::string problem;                        // why the template is not known
};

// `begin` is the text of the token that begins texts.
ChatTemplate recognise_template(std::string_view jinja, std::string_view begin);

// The conversation with the beginning of the assistant's answer.
// Throws InvalidArgument as Tokenizer::apply_chat_template() says.
std::string render(const ChatTemplate& chat, std::span<const ChatMessage> messages);

}  // namespace heed::inline v0::text
