// The files of this folder, embedded by the build.
#pragma once

#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace explorer {

// page.html, with the placeholders @POLICY@, @STYLE@, @DATA@ and @SCRIPT@.
std::string_view page_source();
std::string_view style_source();
// All .js files, in one function.
std::string_view script_source();

// SHA-256 in hexadecimal digits of the two texts above.
std::string_view style_sha256();
std::string_view script_sha256();

}}}  // namespace heed::v0::explorer
