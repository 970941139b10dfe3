// JSON text: the one place where it is parsed whole, and where its library's errors become heed's.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace heed::inline v0::io {

// @throws FormatError naming `file` and the byte when the text is not JSON or holds a number that a
// double cannot hold.
nlohmann::json parse_json(std::string_view text, const std::string& file);

// What an exception of the library says, without its own name in front.
std::string problem_of(const nlohmann::json::exception& error);

}  // namespace heed::inline v0::io
