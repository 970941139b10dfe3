// Text in terminal cells, and blocks of it side by side.
#include "heed/viz/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "io/unicode.h"
#include "viz/cells.h"

namespace heed { inline namespace v0 { namespace cells {

namespace {

constexpr std::string_view kReset = "\x1b[0m";

std::string spaces(int count) { return std::string(static_cast<std::size_t>(count), ' '); }

int squared_distance(Rgb a, Rgb b) {
  const int red = a.red - b.red;
  const int green = a.green - b.green;
  const int blue = a.blue - b.blue;
  return red * red + green * green + blue * blue;
}

// xterm's colours 16 … 255: a cube of 6 × 6 × 6 with these levels, and 24 greys.
constexpr std::array<std::uint8_t, 6> kLevels{0, 95, 135, 175, 215, 255};
constexpr int kFirstGrey = 232;

std::uint8_t grey_level(int grey) { return static_cast<std::uint8_t>(8 + 10 * grey); }

// The number of the closest xterm colour.
int xterm_color(Rgb color) {
  const auto nearest_level = [&](int channel) {
    const auto closer = [&](int a, int b) { return std::abs(channel - a) < std::abs(channel - b); };
    return static_cast<std::size_t>(std::min_element(kLevels.begin(), kLevels.end(), closer) -
                                    kLevels.begin());
  };
  const std::size_t r = nearest_level(color.red);
  const std::size_t g = nearest_level(color.green);
  const std::size_t b = nearest_level(color.blue);
  const int grey = std::clamp((color.red + color.green + color.blue) / 3 - 3, 0, 235) / 10;
  const std::uint8_t level = grey_level(grey);
  const bool is_grey = squared_distance(color, {level, level, level}) <
                       squared_distance(color, {kLevels[r], kLevels[g], kLevels[b]});
  return is_grey ? kFirstGrey + grey : static_cast<int>(16 + 36 * r + 6 * g + b);
}

// The colour that a terminal shows for `color`.
Rgb shown_color(Rgb color, ColorDepth depth) {
  if (depth != ColorDepth::k256) return color;
  const int index = xterm_color(color);
  if (index >= kFirstGrey) {
    const std::uint8_t level = grey_level(index - kFirstGrey);
    return {level, level, level};
  }
  const auto cube = static_cast<std::size_t>(index - 16);
  return {kLevels[cube / 36], kLevels[cube / 6 % 6], kLevels[cube % 6]};
}

// The parameters of the SGR sequence that selects `color`; layer is 38 for text, 48 for background.
std::string select(int layer, Rgb color, ColorDepth depth) {
  if (depth == ColorDepth::k256) return fmt::format("{};5;{}", layer, xterm_color(color));
  return fmt::format("{};2;{};{};{}", layer, color.red, color.green, color.blue);
}

}  // namespace

std::string cut(std::string_view text, int width, const TerminalStyle& style) {
  if (unicode::columns(text) <= width) return std::string(text);
  return std::string(unicode::prefix_of_columns(text, width - 1)) + (style.utf8 ? "…" : "~");
}

std::string centered(std::string_view text, int width) {
  const int free = width - unicode::columns(text);
  return spaces(free / 2).append(text) + spaces(free - free / 2);
}

std::string right_aligned(std::string_view text, int width) {
  return spaces(width - unicode::columns(text)).append(text);
}

std::string wrapped(std::string_view text, const TerminalStyle& style) {
  std::string lines;
  int used = 0;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    const std::string fitting = cut(word, style.width, style);
    const int width = unicode::columns(fitting);
    const bool starts_line = used == 0 || used + 1 + width > style.width;
    if (used != 0) lines += starts_line ? '\n' : ' ';
    used = starts_line ? width : used + 1 + width;
    lines += fitting;
  }
  return lines + '\n';
}

std::string number(float value, int width) {
  for (int decimals = 2; decimals >= 0; --decimals) {
    std::string text = fmt::format("{:.{}f}", value, decimals);
    const bool is_long = static_cast<int>(text.size()) > width;
    if (is_long && text.rfind("0.", 0) == 0) text.erase(0, 1);
    if (static_cast<int>(text.size()) <= width) return text;
  }
  return std::string(static_cast<std::size_t>(width), '#');
}

std::string painted(std::string_view text, Rgb background, ColorDepth depth) {
  if (depth == ColorDepth::kPlain) return std::string(text);
  const Rgb ink = text_color_on(shown_color(background, depth));
  return fmt::format("\x1b[{};{}m{}{}", select(48, background, depth), select(38, ink, depth), text,
                     kReset);
}

std::string halves(std::optional<Rgb> upper, std::optional<Rgb> lower, ColorDepth depth) {
  if (upper && lower) {
    return fmt::format("\x1b[{};{}m▀{}", select(48, *lower, depth), select(38, *upper, depth),
                       kReset);
  }
  if (upper) return fmt::format("\x1b[{}m▀{}", select(38, *upper, depth), kReset);
  if (lower) return fmt::format("\x1b[{}m▄{}", select(38, *lower, depth), kReset);
  return dimmed("·", depth);
}

std::string dimmed(std::string_view text, ColorDepth depth) {
  if (depth == ColorDepth::kPlain) return std::string(text);
  return fmt::format("\x1b[2m{}{}", text, kReset);
}

}}}  // namespace heed::v0::cells

namespace heed { inline namespace v0 {

namespace {

constexpr std::string_view kEscape = "\x1b[";

std::vector<std::string_view> split_lines(std::string_view block) {
  std::vector<std::string_view> lines;
  while (!block.empty()) {
    lines.push_back(block.substr(0, block.find('\n')));
    block.remove_prefix(std::min(lines.back().size() + 1, block.size()));
  }
  return lines;
}

// The size of the escape sequence at the beginning of `text`, which ends with a character from @ to
// ~.
std::size_t escape_size(std::string_view text) {
  std::size_t size = kEscape.size();
  while (size < text.size() && (text[size] < '@' || text[size] > '~')) ++size;
  return std::min(size + 1, text.size());
}

std::string without_trailing_spaces(std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

int terminal_columns(std::string_view line) {
  int columns = 0;
  while (!line.empty()) {
    const std::size_t escape = std::min(line.find(kEscape), line.size());
    columns += unicode::columns(line.substr(0, escape));
    line.remove_prefix(escape);
    if (!line.empty()) line.remove_prefix(escape_size(line));
  }
  return columns;
}

std::string wrap_text(std::string_view text, int width) {
  return cells::wrapped(text, {.width = std::max(width, kMinTerminalWidth)});
}

std::string side_by_side(std::span<const std::string> blocks, int gap) {
  std::vector<std::string> rows;
  int used = 0;
  for (const std::string& block : blocks) {
    const std::vector<std::string_view> lines = split_lines(block);
    rows.resize(std::max(rows.size(), lines.size()));
    int width = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const int missing = used - terminal_columns(rows[i]);
      rows[i].append(static_cast<std::size_t>(missing), ' ').append(lines[i]);
      width = std::max(width, terminal_columns(lines[i]));
    }
    used += width + gap;
  }
  std::string text;
  for (std::string& row : rows) text += without_trailing_spaces(std::move(row)) + '\n';
  return text;
}

}}  // namespace heed::v0
