#include "heed/text/tokenizer.h"

#include "heed/error.h"

namespace heed::inline v0::text {

Tokenizer::~Tokenizer() = default;

std::string Tokenizer::apply_chat_template(std::span<const ChatMessage>) const {
  throw InvalidArgument("Tokenizer::apply_chat_template: the tokenizer has no template");
}

}  // namespace heed::inline v0::text
