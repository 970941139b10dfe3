// The encoding of bytes in byte-level BPE: each of the 256 bytes is one visible character, so that
// tokens are text. Bytes that are visible characters of Latin-1 stand for themselves, the others,
// in order, are U+0100 …: "Ġ" is the space. Source: bytes_to_unicode() of
// https://github.com/openai/gpt-2/blob/master/src/encoder.py
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace text {

// The visible character of a byte, in UTF-8.
std::string_view visible_byte(unsigned char byte);

// The bytes of a token; nothing if one of its characters stands for no byte.
std::optional<std::string> bytes_of_visible(std::string_view token);

}}}  // namespace heed::v0::text
