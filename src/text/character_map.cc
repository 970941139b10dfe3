#include "text/character_map.h"

#include <fmt/format.h>

#include "io/unicode.h"
#include "text/code_points.h"

namespace heed { inline namespace v0 { namespace text {
namespace {

constexpr std::size_t kSizeBytes = 4;
constexpr std::size_t kUnitBytes = 4;

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 4; i > 0; --i) {
    value = value << 8 | static_cast<unsigned char>(bytes[at + i - 1]);
  }
  return value;
}

// A unit is a node, or the value of one.
constexpr std::uint32_t kValueBit = 1U << 31;
bool is_value(std::uint32_t unit) { return (unit & kValueBit) != 0; }
std::uint32_t value_of(std::uint32_t unit) { return unit & ~kValueBit; }
bool has_value(std::uint32_t unit) { return (unit >> 8 & 1U) != 0; }
std::uint32_t label_of(std::uint32_t unit) { return unit & (kValueBit | 0xFFU); }
std::uint32_t offset_of(std::uint32_t unit) { return (unit >> 10) << ((unit & 1U << 9) >> 6); }

// The longest replacement in bytes, which bounds the size of a text. Of Unicode's it is 33.
constexpr std::size_t kLongestReplacement = 256;

// The problem of a unit. Those of a node's children are in one block of 256, the first of which may
// be the node's value.
std::string problem_of_unit(const std::vector<std::uint32_t>& units, std::size_t i,
                            std::string_view replacements) {
  const std::uint32_t unit = units[i];
  if (is_value(unit)) {
    const std::uint32_t value = value_of(unit);
    const bool is_inside = value < replacements.size() &&
                           (static_cast<unsigned char>(replacements[value]) & 0xC0U) != 0x80;
    if (is_inside) {
      const bool ends =
          replacements.substr(value, kLongestReplacement + 1).find('\0') != std::string_view::npos;
      return ends ? "" : fmt::format("has a replacement of over {} bytes", kLongestReplacement);
    }
    return fmt::format("has the replacement {} of {} bytes", value, replacements.size());
  }
  const std::size_t base = i ^ offset_of(unit);
  if ((base | 0xFFU) >= units.size()) {
    return fmt::format("has a node beyond its {} units", units.size());
  }
  if (has_value(unit) && !is_value(units[base])) return "has a string without a replacement";
  return "";
}

std::vector<std::uint32_t> units_of(std::string_view bytes) {
  std::vector<std::uint32_t> units(little_endian(bytes, 0) / kUnitBytes);
  for (std::size_t i = 0; i < units.size(); ++i) {
    units[i] = little_endian(bytes, kSizeBytes + i * kUnitBytes);
  }
  return units;
}

}  // namespace

std::string CharacterMap::problem_of(std::string_view bytes) {
  if (bytes.size() < kSizeBytes) return fmt::format("has {} bytes", bytes.size());
  const std::size_t size = little_endian(bytes, 0);
  if (size == 0 || size % kUnitBytes != 0 || size > bytes.size() - kSizeBytes) {
    return fmt::format("gives its array {} of {} bytes", size, bytes.size() - kSizeBytes);
  }
  const std::string_view replacements = bytes.substr(kSizeBytes + size);
  if (replacements.empty() || replacements.back() != '\0') return "does not end with a NUL";
  if (unicode::find_invalid(replacements)) return "has replacements that are not UTF-8";
  const std::vector<std::uint32_t> units = units_of(bytes);
  if (is_value(units[0])) return "has no node at its beginning";
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (std::string problem = problem_of_unit(units, i, replacements); !problem.empty()) {
      return problem;
    }
  }
  return "";
}

CharacterMap::CharacterMap(std::string_view bytes)
    : units_(units_of(bytes)),
      replacements_(bytes.substr(kSizeBytes + units_.size() * kUnitBytes)) {}

std::optional<CharacterMap::Match> CharacterMap::find(std::string_view text,
                                                      bool stops_at_first) const {
  std::optional<Match> found;
  std::size_t node = offset_of(units_[0]);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::uint32_t unit = units_[node ^ byte];
    if (byte == 0 || label_of(unit) != byte) break;
    node ^= byte ^ offset_of(unit);
    const bool is_inside =
        i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xC0U) == 0x80;
    if (!has_value(unit) || is_inside) continue;
    const char* replacement = replacements_.data() + value_of(units_[node]);
    found = Match{i + 1, std::string_view(replacement)};  // it ends with a NUL
    if (stops_at_first) break;
  }
  return found;
}

AlignedText replace_longest(const AlignedText& text, const CharacterMap& map) {
  AlignedWriter writer(text);
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view rest = text.bytes().substr(at);
    const auto match = map.longest(rest);
    const std::size_t size = match ? match->size : character_at(rest, 0).size;
    if (match) {
      writer.put(match->replacement, text.origin(at, at + size));
    } else {
      writer.copy(at, at + size);
    }
    at += size;
  }
  return writer.take();
}

AlignedText replace_clusters(const AlignedText& text, const CharacterMap& map) {
  constexpr std::size_t kLongest = 5;
  AlignedWriter writer(text);
  // Replaces the bytes [begin, end) as a whole.
  const auto replace = [&](std::size_t begin, std::size_t end) {
    const auto match = map.shortest(text.bytes().substr(begin, end - begin));
    if (match) writer.put(match->replacement, text.origin(begin, end));
    return match.has_value();
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = at + unicode::grapheme_size(text.bytes().substr(at));
    if (end - at <= kLongest && replace(at, end)) {
      at = end;
      continue;
    }
    while (at < end) {
      const std::size_t next = at + character_at(text.bytes(), at).size;
      if (!replace(at, next)) writer.copy(at, next);
      at = next;
    }
  }
  return writer.take();
}

namespace {

// The six bits of a character of Base64; nothing for others.
std::optional<std::uint32_t> bits_of(char c) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::size_t found = kDigits.find(c);
  if (found == kDigits.npos) return std::nullopt;
  return static_cast<std::uint32_t>(found);
}

}  // namespace

std::optional<std::string> bytes_of_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i) {
      const bool is_padding = i >= text.size() - padding;
      const auto bits = is_padding ? std::optional<std::uint32_t>(0) : bits_of(text[i]);
      if (!bits) return std::nullopt;
      value = value << 6 | *bits;
    }
    for (int shift = 16; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xFFU);
  }
  bytes.resize(bytes.size() - padding);
  return bytes;
}

}}}  // namespace heed::v0::text
