#include "mask_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "verbs.h"

namespace heed::cli {

namespace {

// The whole of `text` as a number from 0.
std::optional<std::int64_t> parse_count(std::string_view text) {
  std::int64_t count = -1;
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stopped != end || count < 0) return std::nullopt;
  return count;
}

std::optional<std::int64_t> parse_side(std::string_view text) {
  return text == "unbounded" || text == "inf" ? kUnbounded : parse_count(text);
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  return text.substr(0, text.find_last_not_of(' ') + 1);
}

// What follows `prefix`, where text starts with it.
std::optional<std::string_view> after(std::string_view prefix, std::string_view text) {
  if (text.substr(0, prefix.size()) != prefix) return std::nullopt;
  return text.substr(prefix.size());
}

Mask parse_one(std::string_view option, std::string_view name) {
  if (name == "none") return Mask();
  if (name == "causal") return causal();
  if (const auto sides = after("window:", name)) {
    const WindowSides window = parse_window(option, *sides);
    return sliding_window(window.left, window.right);
  }
  if (const auto length = after("prefix:", name)) {
    if (const auto count = parse_count(*length)) return prefix(*count);
  }
  throw UsageError(fmt::format("{}: '{}' is not a mask, expected {}, several of them joined by '&'",
                               option, name, kMaskNames));
}

}  // namespace

WindowSides parse_window(std::string_view option, std::string_view sides) {
  const std::size_t comma = std::min(sides.find(','), sides.size());
  const auto left = parse_side(trimmed(sides.substr(0, comma)));
  const auto right = parse_side(trimmed(sides.substr(std::min(comma + 1, sides.size()))));
  if (!left || !right) {
    throw UsageError(
        fmt::format("{}: '{}' is not a window, expected LEFT,RIGHT: how many keys besides its own "
                    "position a query sees on each side, from 0 to 'unbounded'",
                    option, sides));
  }
  return {*left, *right};
}

Alignment parse_alignment(std::string_view name) {
  if (name == "top-left") return Alignment::top_left();
  if (name == "bottom-right") return Alignment::bottom_right();
  return Alignment::square();
}

Mask parse_causal_and_window(std::string_view causal, std::string_view window) {
  const Alignment alignment = parse_alignment(causal);
  Mask mask;
  if (!causal.empty()) mask = mask & heed::causal(alignment);
  if (!window.empty()) {
    const WindowSides sides = parse_window("--window", window);
    mask = mask & sliding_window(sides.left, sides.right, alignment);
  }
  return mask;
}

Mask parse_mask(std::string_view option, std::string_view names) {
  Mask mask;
  while (true) {
    const std::size_t end = std::min(names.find('&'), names.size());
    mask = mask & parse_one(option, trimmed(names.substr(0, end)));
    if (end == names.size()) return mask;
    names.remove_prefix(end + 1);
  }
}

}  // namespace heed::cli
