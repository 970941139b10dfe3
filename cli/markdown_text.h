// Formats Markdown reports for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace heed::cli {

// Aligns the columns of tables, the first to the left and the others to the right, and underlines
// titles; other text is unchanged.
std::string without_markup(std::string_view markdown);

// Returns without_markup() if standard output is a terminal, else the Markdown.
std::string for_stdout(std::string markdown);

}  // namespace heed::cli
