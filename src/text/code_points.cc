#include "text/code_points.h"

#include <utf8proc.h>

#include <array>

#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

utf8proc_category_t general_category(char32_t value) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool is_within(char32_t value, char32_t first, char32_t last) noexcept {
  return value >= first && value <= last;
}

bool is_ascii_letter(char32_t value) noexcept { return is_within(value | 0x20, 'a', 'z'); }

// Symbols that are alphabetic in Unicode: letters in circles and squares.
bool is_alphabetic_symbol(char32_t value) noexcept {
  return is_within(value, 0x24B6, 0x24E9) || is_within(value, 0x1F130, 0x1F149) ||
         is_within(value, 0x1F150, 0x1F169) || is_within(value, 0x1F170, 0x1F189);
}

}  // namespace

Character character_before(std::string_view text, std::size_t end) noexcept {
  std::size_t begin = end - 1;
  while ((static_cast<unsigned char>(text[begin]) & 0xC0) == 0x80) --begin;
  return character_at(text, begin);
}

std::size_t count_characters(std::string_view text) noexcept {
  std::size_t count = 0;
  for (const char byte : text) count += (static_cast<unsigned char>(byte) & 0xC0) != 0x80 ? 1 : 0;
  return count;
}

void append_character(std::string& text, char32_t value) {
  utf8proc_uint8_t bytes[4];
  const auto size = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  text.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(size));
}

bool is_letter(char32_t value) noexcept {
  if (value < 0x80) return is_ascii_letter(value);
  const auto c = general_category(value);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

bool is_number(char32_t value) noexcept {
  if (value < 0x80) return is_within(value, '0', '9');
  const auto c = general_category(value);
  return c >= UTF8PROC_CATEGORY_ND && c <= UTF8PROC_CATEGORY_NO;
}

bool is_space(char32_t value) noexcept {
  if (value < 0x80) return value == ' ' || is_within(value, 0x09, 0x0D);
  return unicode::is_whitespace(value);
}

bool is_control(char32_t value) noexcept {
  if (value < 0x80) return value < 0x20 || value == 0x7F;
  return general_category(value) >= UTF8PROC_CATEGORY_CC;
}

bool is_mark(char32_t value) noexcept {
  const auto c = general_category(value);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing(char32_t value) noexcept {
  return value >= 0x80 && general_category(value) == UTF8PROC_CATEGORY_MN;
}

bool is_word_part(char32_t value) noexcept {
  constexpr char32_t kNonJoiner = 0x200C;
  constexpr char32_t kJoiner = 0x200D;
  if (value < 0x80) return is_ascii_letter(value) || is_number(value) || value == '_';
  const auto c = general_category(value);
  return (c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NL) || c == UTF8PROC_CATEGORY_PC ||
         value == kNonJoiner || value == kJoiner || is_alphabetic_symbol(value);
}

bool is_punctuation(char32_t value) noexcept {
  if (value < 0x80) {
    return is_within(value, '!', '~') && !is_ascii_letter(value) && !is_number(value);
  }
  const auto c = general_category(value);
  return c >= UTF8PROC_CATEGORY_PC && c <= UTF8PROC_CATEGORY_PO;
}

void append_lower(std::string& text, char32_t value) {
  constexpr char32_t kDottedCapitalI = 0x130;
  if (value < 0x80) {
    text += static_cast<char>(is_within(value, 'A', 'Z') ? value + 0x20 : value);
  } else if (value == kDottedCapitalI) {
    text += "i\u0307";
  } else {
    append_character(text,
                     static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value))));
  }
}

namespace {

constexpr char32_t kEnd = 0x144;  // the end for 256 bytes, 68 of which are moved to U+0100 …

struct ByteTable {
  std::array<std::string, 256> visible;
  std::array<int, kEnd> bytes;  // -1: none
};

bool stands_for_itself(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

ByteTable make_byte_table() {
  ByteTable table;
  table.bytes.fill(-1);
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t value = stands_for_itself(byte) ? static_cast<char32_t>(byte) : next++;
    append_character(table.visible[static_cast<std::size_t>(byte)], value);
    table.bytes[value] = byte;
  }
  return table;
}

const ByteTable& byte_table() {
  static const ByteTable table = make_byte_table();
  return table;
}

}  // namespace

std::string_view visible_byte(unsigned char byte) { return byte_table().visible[byte]; }

std::optional<std::string> bytes_of_visible(std::string_view token) {
  const ByteTable& table = byte_table();
  std::string bytes;
  for (std::size_t at = 0; at < token.size();) {
    const auto [value, size] = character_at(token, at);
    const int byte = value < kEnd ? table.bytes[value] : -1;
    if (byte < 0) return std::nullopt;
    bytes += static_cast<char>(byte);
    at += size;
  }
  return bytes;
}

}}}  // namespace heed::v0::text
