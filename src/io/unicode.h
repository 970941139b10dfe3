/// What heed needs to know about Unicode text, over utf8proc. Inside the library only.
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

/// The code point that `text` starts with; nothing when the text is empty or its first bytes are
/// truncated, overlong, a surrogate or beyond U+10FFFF.
std::optional<CodePoint> first_code_point(std::string_view text) noexcept;

/// The offset of the first byte that is not part of valid UTF-8.
HEED_API std::optional<std::size_t> find_invalid(std::string_view text) noexcept;

/// A letter, mark or number (general categories L, M and N).
bool is_word_character(char32_t value) noexcept;

/// White_Space of Unicode: separators (Z) and U+0009 … U+000D, U+0085.
bool is_whitespace(char32_t value) noexcept;

/// A letter of a script written in wide characters without spaces: Han, Hiragana, Katakana and
/// their kin, but not Hangul.
bool is_ideograph(char32_t value) noexcept;

/// The bytes of the extended grapheme cluster (what a reader calls one character) that `text`, not
/// empty and valid, starts with.
std::size_t grapheme_size(std::string_view text) noexcept;

/// The terminal columns of valid text. A cluster is at most two columns wide, so that an emoji
/// joined from several counts once.
int columns(std::string_view text) noexcept;

/// The longest start of valid text that fits in `limit` columns, in whole clusters.
std::string_view prefix_of_columns(std::string_view text, int limit) noexcept;

/// `value` written out for the eye: \n, \t, \r, \x1B, \u{202E}.
std::string escaped(char32_t value);

/// Any bytes as valid UTF-8 in which every character is visible and none commands a terminal:
/// controls, line separators, format characters (bidirectional overrides among them; the joiners
/// inside words and emoji stay) and invalid bytes are escaped; a mark with nothing to sit on gets
/// a dotted circle.
std::string legible(std::string_view bytes);

}}}  // namespace heed::v0::unicode
