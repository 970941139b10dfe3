// JSON that comes from elsewhere: files, and requests to `heed serve`.
#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace io {

// What is copied or printed is gone through by recursion, which this many levels do not overflow.
inline constexpr int kMaxJsonDepth = 32;

// The value, or one for which is_discarded() holds where the text is not JSON, holds a number that
// a double cannot hold, or nests deeper than kMaxJsonDepth.
HEED_API nlohmann::json parse_json(std::string_view text);

}}}  // namespace heed::v0::io
