#include "heed/viz/terminal.h"

#include <cctype>
#include <charconv>
#include <cstdlib>

#include "core/platform.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 {
namespace {

constexpr int kMaxWidth = 10'000;

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

ColorDepth color_depth() {
  const std::string_view term = environment("TERM");
  const std::string_view color_term = environment("COLORTERM");
  if (!environment("NO_COLOR").empty() || term == "dumb") return ColorDepth::kPlain;
  if (color_term == "truecolor" || color_term == "24bit") return ColorDepth::kTrueColor;
  return term.find("256color") != term.npos ? ColorDepth::k256 : ColorDepth::kPlain;
}

int terminal_width(int fd) {
  const std::string_view columns = environment("COLUMNS");
  int width = 0;
  std::from_chars(columns.data(), columns.data() + columns.size(), width);
  if (width <= 0) width = platform::terminal_columns(fd);
  return width > 0 && width <= kMaxWidth ? width : TerminalStyle().width;
}

bool is_utf8_locale() {
  std::string_view locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = environment(name);
  }
  const std::size_t dot = locale.find('.');
  if (dot == locale.npos) return true;
  std::string charset(locale.substr(dot + 1, locale.find('@') - dot - 1));
  for (char& c : charset) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return charset == "utf-8" || charset == "utf8";
}

}  // namespace

TerminalStyle detect_terminal(int fd) {
  TerminalStyle style;
  if (platform::is_terminal(fd)) style.depth = color_depth();
  style.width = terminal_width(fd);
  style.utf8 = is_utf8_locale();
  return style;
}

std::string sanitize_for_terminal(std::string_view text) { return unicode::legible(text); }

}}  // namespace heed::v0
