// Splits a text into pieces that a model reads one by one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace heed::cli {

// Joins paragraphs, which empty lines separate, into at most `count` pieces of at least `bytes`
// bytes; the last may be shorter. Skips paragraphs of white space.
std::vector<std::string> text_pieces(std::string_view text, std::int64_t bytes, std::int64_t count);

}  // namespace heed::cli
