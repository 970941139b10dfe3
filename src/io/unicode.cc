#include "io/unicode.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cassert>

namespace heed { inline namespace v0 { namespace unicode {
namespace {

constexpr char32_t kZeroWidthNonJoiner = 0x200C;
constexpr char32_t kZeroWidthJoiner = 0x200D;
constexpr char32_t kEmojiPresentation = 0xFE0F;
constexpr std::string_view kDottedCircle = "◌";

utf8proc_category_t category(char32_t value) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool is_mark(char32_t value) noexcept {
  const auto c = category(value);
  return c >= UTF8PROC_CATEGORY_MN && c <= UTF8PROC_CATEGORY_ME;
}

bool is_hangul(char32_t value) noexcept {
  return (value >= 0x1100 && value <= 0x11FF) || (value >= 0x3130 && value <= 0x318F) ||
         (value >= 0xA960 && value <= 0xA97F) || (value >= 0xAC00 && value <= 0xD7FF);
}

bool needs_escape(char32_t value) noexcept {
  switch (category(value)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    case UTF8PROC_CATEGORY_CF:
      return value != kZeroWidthNonJoiner && value != kZeroWidthJoiner;
    default:
      return false;
  }
}

int cluster_columns(std::string_view cluster) noexcept {
  int sum = 0;
  while (const auto code_point = first_code_point(cluster)) {
    if (code_point->value == kEmojiPresentation) return 2;
    sum += std::max(utf8proc_charwidth(static_cast<utf8proc_int32_t>(code_point->value)), 0);
    cluster.remove_prefix(code_point->size);
  }
  return std::min(sum, 2);
}

}  // namespace

std::optional<CodePoint> first_code_point(std::string_view text) noexcept {
  utf8proc_int32_t value = 0;
  const auto size = utf8proc_iterate(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
      static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &value);
  if (size <= 0) return std::nullopt;
  return CodePoint{static_cast<char32_t>(value), static_cast<std::size_t>(size)};
}

std::optional<std::size_t> find_invalid(std::string_view text) noexcept {
  std::size_t offset = 0;
  while (offset < text.size()) {
    const auto code_point = first_code_point(text.substr(offset));
    if (!code_point) return offset;
    offset += code_point->size;
  }
  return std::nullopt;
}

bool is_word_character(char32_t value) noexcept {
  const auto c = category(value);
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_NO;
}

bool is_whitespace(char32_t value) noexcept {
  const auto c = category(value);
  return (c >= UTF8PROC_CATEGORY_ZS && c <= UTF8PROC_CATEGORY_ZP) ||
         (value >= 0x09 && value <= 0x0D) || value == 0x85;
}

bool is_ideograph(char32_t value) noexcept {
  const auto c = category(value);
  return (c == UTF8PROC_CATEGORY_LO || c == UTF8PROC_CATEGORY_LM) &&
         utf8proc_charwidth(static_cast<utf8proc_int32_t>(value)) == 2 && !is_hangul(value);
}

std::size_t grapheme_size(std::string_view text) noexcept {
  auto previous = first_code_point(text);
  assert(previous.has_value());
  std::size_t size = previous->size;
  utf8proc_int32_t state = 0;
  while (const auto next = first_code_point(text.substr(size))) {
    if (utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(previous->value),
                                         static_cast<utf8proc_int32_t>(next->value), &state)) {
      break;
    }
    size += next->size;
    previous = next;
  }
  return size;
}

int columns(std::string_view text) noexcept {
  int sum = 0;
  while (!text.empty()) {
    const std::size_t size = grapheme_size(text);
    sum += cluster_columns(text.substr(0, size));
    text.remove_prefix(size);
  }
  return sum;
}

std::string_view prefix_of_columns(std::string_view text, int limit) noexcept {
  std::size_t end = 0;
  int used = 0;
  while (end < text.size()) {
    const std::size_t size = grapheme_size(text.substr(end));
    used += cluster_columns(text.substr(end, size));
    if (used > limit) break;
    end += size;
  }
  return text.substr(0, end);
}

std::string escaped(char32_t value) {
  switch (value) {
    case U'\n':
      return "\\n";
    case U'\t':
      return "\\t";
    case U'\r':
      return "\\r";
    default:
      break;
  }
  const auto number = static_cast<std::uint32_t>(value);
  return value < 0x80 ? fmt::format("\\x{:02X}", number) : fmt::format("\\u{{{:X}}}", number);
}

std::string legible(std::string_view bytes) {
  std::string result;
  bool has_base = false;
  while (!bytes.empty()) {
    const auto code_point = first_code_point(bytes);
    const std::size_t size = code_point ? code_point->size : 1;
    if (!code_point) {
      result += fmt::format("\\x{:02X}", static_cast<unsigned char>(bytes.front()));
    } else if (needs_escape(code_point->value)) {
      result += escaped(code_point->value);
    } else {
      if (!has_base && is_mark(code_point->value)) result += kDottedCircle;
      result += bytes.substr(0, size);
    }
    has_base = code_point && code_point->value != U' ' && !needs_escape(code_point->value);
    bytes.remove_prefix(size);
  }
  return result;
}

}}}  // namespace heed::v0::unicode
