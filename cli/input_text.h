// Reads texts from the command line, files and standard input.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

// The name that means standard input in place of a text or a file.
inline constexpr const char* kStandardInput = "-";

// True if standard input is a pipe, a file or a socket, but no terminal or /dev/null.
bool has_standard_input();

// Returns the text of a file, or of standard input for "-". Throws IoError.
std::string read_input(const std::string& path);

// Joins the words after the verb; the single word "-" reads standard input without its last line
// break. Throws IoError; UsageError when standard input is empty.
std::string read_words(const std::vector<std::string>& words);

}  // namespace heed::cli
