// The check of a tokenizer's input.
#pragma once

#include <fmt/format.h>

#include <string_view>

#include "heed/core/error.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace text {

// Throws InvalidArgument, naming `function`, if the text is not valid UTF-8.
inline void check_utf8(const char* function, std::string_view text) {
  if (const auto offset = unicode::find_invalid(text)) {
    throw InvalidArgument(fmt::format("{}: the text is not valid UTF-8 at byte {}, 0x{:02X}",
                                      function, *offset,
                                      static_cast<unsigned char>(text[*offset])));
  }
}

}}}  // namespace heed::v0::text
