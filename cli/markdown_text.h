// Reports in Markdown as a person reads them on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace heed::cli {

// The columns of tables aligned, the first to the left and the others to the right, and titles
// underlined; everything else as it is.
std::string without_markup(std::string_view markdown);

// What goes to standard output: without_markup() for a terminal, the Markdown for a file or pipe.
std::string for_stdout(std::string markdown);

}  // namespace heed::cli
