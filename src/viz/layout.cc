#include "heed/viz/layout.h"

#include <algorithm>
#include <vector>

#include "io/unicode.h"
#include "viz/cells.h"

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
