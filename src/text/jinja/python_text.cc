#include "text/jinja/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <charconv>
#include <cmath>

#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text { namespace jinja {

bool is_python_space(char32_t value) noexcept {
  return is_space(value) || (value >= 0x1C && value <= 0x1F);
}

std::string_view stripped(std::string_view text, Sides sides, const std::string* characters) {
  const auto is_removed = [&](std::string_view character) {
    if (characters != nullptr) return characters->find(character) != std::string::npos;
    return is_python_space(character_at(character, 0).value);
  };
  while (sides != Sides::kRight && !text.empty()) {
    const std::size_t size = character_at(text, 0).size;
    if (!is_removed(text.substr(0, size))) break;
    text.remove_prefix(size);
  }
  while (sides != Sides::kLeft && !text.empty()) {
    const std::size_t size = character_before(text, text.size()).size;
    if (!is_removed(text.substr(text.size() - size))) break;
    text.remove_suffix(size);
  }
  return text;
}

namespace {

// The characters that one letter behind a backslash stands for.
constexpr std::string_view kEscapeLetters = "nrtabfv\\'\"";
constexpr std::string_view kEscapeValues = "\n\r\t\a\b\f\v\\'\"";

// Reads an escape of digits at `at`, behind its letter.
std::optional<char32_t> numeric_escape(std::string_view text, std::size_t& at, std::size_t digits,
                                       int base) {
  std::uint32_t value = 0;
  const std::string_view part = text.substr(at, digits);
  const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value, base);
  const auto size = static_cast<std::size_t>(end - part.data());
  if (error != std::errc() || (base == 16 && size != digits)) return std::nullopt;
  if (value > 0x10FFFF || (value >= 0xD800 && value < 0xE000)) return std::nullopt;
  at += size;
  return static_cast<char32_t>(value);
}

}  // namespace

std::optional<std::string> unescaped(std::string_view literal) {
  std::string result;
  for (std::size_t at = 0; at < literal.size();) {
    if (literal[at] != '\\' || at + 1 == literal.size()) {
      result += literal[at++];
      continue;
    }
    const char letter = literal[at + 1];
    at += 2;
    const std::size_t known = kEscapeLetters.find(letter);
    if (known != std::string_view::npos) {
      result += kEscapeValues[known];
    } else if (letter == 'x' || letter == 'u' || letter == 'U') {
      const auto value = numeric_escape(literal, at, letter == 'x' ? 2 : letter == 'u' ? 4 : 8, 16);
      if (!value) return std::nullopt;
      append_character(result, *value);
    } else if (letter >= '0' && letter <= '7') {
      const auto value = numeric_escape(literal, --at, 3, 8);
      if (!value) return std::nullopt;
      append_character(result, *value);
    } else if (letter == 'N') {
      return std::nullopt;
    } else if (letter != '\n') {
      result += '\\';
      result += letter;
    }
  }
  return result;
}

std::string upper_of(char32_t value) {
  if (value == 0xDF) return "SS";
  std::string result;
  append_character(result,
                   static_cast<char32_t>(utf8proc_toupper(static_cast<std::int32_t>(value))));
  return result;
}

std::string lower_of(char32_t value) {
  std::string result;
  append_lower(result, value);
  return result;
}

char quote_for(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  return has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
}

std::string escaped_for_repr(char32_t value, char quote) {
  if (value == '\n') return "\\n";
  if (value == '\r') return "\\r";
  if (value == '\t') return "\\t";
  if (value == '\\') return "\\\\";
  if (value == static_cast<char32_t>(quote)) return std::string("\\") + quote;
  std::string result;
  const bool is_hidden = is_control(value) || (is_space(value) && value != ' ');
  if (!is_hidden) {
    append_character(result, value);
  } else if (value < 0x100) {
    result = fmt::format("\\x{:02x}", static_cast<std::uint32_t>(value));
  } else if (value < 0x10000) {
    result = fmt::format("\\u{:04x}", static_cast<std::uint32_t>(value));
  } else {
    result = fmt::format("\\U{:08x}", static_cast<std::uint32_t>(value));
  }
  return result;
}

std::string repr_of(double number) {
  std::string result = fmt::format("{}", number);
  if (std::isfinite(number) && result.find_first_of(".e") == std::string::npos) result += ".0";
  return result;
}

}}}}  // namespace heed::v0::text::jinja
