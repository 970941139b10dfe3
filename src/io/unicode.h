/// The properties of Unicode text that heed uses, from utf8proc. Internal to the library.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "heed/core/config.h"

namespace heed { inline namespace v0 { namespace unicode {

/// A code point and the number of bytes it takes in UTF-8.
struct CodePoint {
  char32_t value;
  std::size_t size;
};

/// The first code point of `text`; nothing if the text is empty or its first bytes are truncated,
/// overlong, a surrogate or beyond U+10FFFF.
std::optional<CodePoint> first_code_point(std::string_view text) noexcept;

/// The offset of the first byte that is not valid UTF-8; nothing if all are valid.
HEED_API std::optional<std::size_t> find_invalid(std::string_view text) noexcept;

/// A letter, mark or number (general categories L, M and N).
bool is_word_character(char32_t value) noexcept;

/// White_Space of Unicode: separators (Z) and U+0009 … U+000D, U+0085.
bool is_whitespace(char32_t value) noexcept;

/// A letter of a script that is written in wide characters without spaces: Han, Hiragana, Katakana
/// and related scripts, but not Hangul.
bool is_ideograph(char32_t value) noexcept;

/// The number of bytes of the first extended grapheme cluster (what a reader calls one character)
/// of `text`, which must be valid and not empty.
std::size_t grapheme_size(std::string_view text) noexcept;

/// The number of terminal columns of valid text. A cluster takes at most two columns, so an emoji
/// joined from several counts once.
int columns(std::string_view text) noexcept;

/// The longest prefix of valid text, in whole clusters, that fits in `limit` columns.
std::string_view prefix_of_columns(std::string_view text, int limit) noexcept;

/// The escape sequence of a character: \n, \t, \r, \x1B, \u{202E}.
std::string escaped(char32_t value);

/// Converts any bytes to valid UTF-8 in which every character is visible and none controls a
/// terminal. Controls, line separators, format characters (including bidirectional overrides, but
/// not the joiners inside words and emoji) and invalid bytes are escaped; a combining mark without
/// a base gets a dotted circle.
std::string legible(std::string_view bytes);

}}}  // namespace heed::v0::unicode
