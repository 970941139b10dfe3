// A text in pieces that a model reads one by one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::cli {

// Paragraphs, which empty lines part, joined until they have so many bytes, at most `count` pieces.
// What is only white space is left out.
std::vector<std::string> text_pieces(std::string_view text, std::int64_t bytes, std::int64_t count);

}  // namespace heed::cli
