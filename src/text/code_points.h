// Characters of valid UTF-8 and their classes, as tokenizers use them, and the visible characters
// of byte-level BPE.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace text {

struct Character {
  char32_t value;
  std::size_t size;  // in bytes of UTF-8
};

// The character that begins at byte `at` of a text in valid UTF-8.
inline Character character_at(std::string_view text, std::size_t at) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[at + i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) {
    return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

// The character that ends at `end` > 0.
Character character_before(std::string_view text, std::size_t end) noexcept;

std::size_t count_characters(std::string_view text) noexcept;

void append_character(std::string& text, char32_t value);

bool is_letter(char32_t value) noexcept;      // general category L
bool is_number(char32_t value) noexcept;      // general category N
bool is_space(char32_t value) noexcept;       // White_Space
bool is_control(char32_t value) noexcept;     // general category C, without unassigned code points
bool is_mark(char32_t value) noexcept;        // general category M
bool is_nonspacing(char32_t value) noexcept;  // general category Mn
bool is_word_part(char32_t value) noexcept;   // \w of regular expressions
// True for general category P and all other visible characters of ASCII that are neither letters
// nor digits.
bool is_punctuation(char32_t value) noexcept;

// Appends the lower case of one character, which may be two characters.
void append_lower(std::string& text, char32_t value);

// The visible character of a byte, in UTF-8.
std::string_view visible_byte(unsigned char byte);

// The bytes of a token; nothing if one of its characters stands for no byte.
std::optional<std::string> bytes_of_visible(std::string_view token);

}}}  // namespace heed::v0::text
