/// Text in terminal cells: cut, centred, wrapped, coloured. All text is valid UTF-8 and sanitised;
/// widths are terminal columns.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "heed/viz/terminal.h"

namespace heed { inline namespace v0 { namespace cells {

/// `text`, or if it is wider than `width` its beginning and an ellipsis.
std::string cut(std::string_view text, int width, const TerminalStyle& style);

/// `text`, not wider than `width`, with spaces on both sides.
std::string centered(std::string_view text, int width);

/// `text`, not wider than `width`, with spaces before it.
std::string right_aligned(std::string_view text, int width);

/// The words of `text` on lines not wider than `width`, each ended by a newline. A word that is
/// wider is cut.
std::string wrapped(std::string_view text, const TerminalStyle& style);

/// `value` in at most `width` columns: "0.25", ".25", "1.0", "12"; "###" when nothing fits.
std::string number(float value, int width);

/// `text` on a background; unchanged without colours.
std::string painted(std::string_view text, Rgb background, ColorDepth depth);

/// One character whose upper and lower half have separate colours; a half without a colour shows
/// the background. Needs UTF-8 and colours.
std::string halves(std::optional<Rgb> upper, std::optional<Rgb> lower, ColorDepth depth);

/// `text` in a faint colour; unchanged without colours.
std::string dimmed(std::string_view text, ColorDepth depth);

}}}  // namespace heed::v0::cells
