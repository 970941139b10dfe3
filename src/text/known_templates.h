// The templates of conversations that heed knows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace heed { inline namespace v0 { namespace text {

// A template as Jinja reads it: line breaks are "\n", also those that a string writes as an escape,
// and one at the end is none.
std::string normalised_template(std::string_view jinja);

// How the template, normalised, writes conversations, if it is one of the known ones: the whole of
// it, but for the words of a default system message. `end` is the text of eos_token.
std::optional<ChatFormat> known_format(std::string_view normalised, const std::string& end);

// Whose template it looks like; empty: nobody knows.
std::string_view family_of_template(std::string_view normalised);

}}}  // namespace heed::v0::text
