// The chat templates that heed knows.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/chat_template.h"

namespace heed { inline namespace v0 { namespace text {

// Returns the template as Jinja reads it: line breaks are "\n", also those written as an escape in
// a string, and a final line break is removed.
std::string normalised_template(std::string_view jinja);

// Returns the format of a normalised template if it is a known one: the whole text must agree,
// except the default system message. `end` is the text of eos_token.
std::optional<ChatFormat> known_format(std::string_view normalised, const std::string& end);

// Returns the model family that the template resembles; empty if unknown.
std::string_view family_of_template(std::string_view normalised);

}}}  // namespace heed::v0::text
