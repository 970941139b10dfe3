// Texts that verbs are given: on the command line, in files, on standard input.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

// What stands for standard input in the place of a text or a file.
inline constexpr const char* kStandardInput = "-";

// Whether something is sent to standard input: a pipe, a file or a socket, neither a terminal nor
// /dev/null.
bool has_standard_input();

// The text of a file, or of standard input for "-". Throws IoError.
std::string read_input(const std::string& path);

// A text that is written in words behind the verb, or the one word "-": then standard input without
// the line break at its end. Throws IoError; UsageError when there is nothing on standard input.
std::string read_words(const std::vector<std::string>& words);

}  // namespace heed::cli
