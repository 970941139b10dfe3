#include "mask_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "heed/error.h"
#include "heed/mask_text.h"
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

Mask parse_mask(std::string_view option, std::string_view text) {
  try {
    return heed::parse_mask(text);
  } catch (const InvalidArgument& error) {
    constexpr std::string_view kFunction = "parse_mask: ";
    std::string_view problem = error.what();
    if (problem.starts_with(kFunction)) problem.remove_prefix(kFunction.size());
    throw UsageError(fmt::format("{}: {}", option, problem));
  }
}

}  // namespace heed::cli
