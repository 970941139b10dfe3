// JSON from outside: files, and requests to `heed serve`.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// Copying and printing recurse; this many levels do not overflow the stack.
inline constexpr int kMaxJsonDepth = 32;

// Returns the value. is_discarded() is true for it if the text is not JSON, holds a number that a
// double cannot hold, or nests deeper than kMaxJsonDepth.
HEED_API nlohmann::json parse_json(std::string_view text);

}}}  // namespace heed::v0::io
