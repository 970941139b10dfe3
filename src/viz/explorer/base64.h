// Base64 text of bytes.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace explorer {

// Base64 with padding: RFC 4648, section 4.
std::string base64(std::span<const std::byte> bytes);

// Base64 of the bytes that pairs of hexadecimal digits give.
std::string base64_of_hex(std::string_view digits);

}}}  // namespace heed::v0::explorer
