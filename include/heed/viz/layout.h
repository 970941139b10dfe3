/// Layout of text for a terminal: wrapping, and blocks next to each other.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 {

/// The narrowest terminal that is supported, in columns.
inline constexpr int kMinTerminalWidth = 20;

/// The width in columns of one line of valid UTF-8. Colours (escape sequences of the form ESC [ …)
/// have none.
HEED_API int terminal_columns(std::string_view line);

/// Wraps the words of `text` to lines of at most `width` columns (at least kMinTerminalWidth), each
/// ended by a newline.
HEED_API std::string wrap_text(std::string_view text, int width);

/// Blocks of lines next to each other, aligned at the top, `gap` columns between them.
HEED_API std::string side_by_side(std::span<const std::string> blocks, int gap = 3);

}}  // namespace heed::v0
