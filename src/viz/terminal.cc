#include "heed/viz/terminal.h"

#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>

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
  winsize size{};
  if (width <= 0 && ioctl(fd, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  return width > 0 && width <= kMaxWidth ? width : TerminalStyle().width;
}

bool is_utf8_locale() {
  std::string_view locale;
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (locale.empty()) locale = environment(name);
  }
  const std::size_t dot = locale.find('.');
  if (dot == locale.npos) return true;
  const std::string charset(locale.substr(dot + 1, locale.find('@') - dot - 1));
  return strcasecmp(charset.c_str(), "UTF-8") == 0 || strcasecmp(charset.c_str(), "utf8") == 0;
}

}  // namespace

TerminalStyle detect_terminal(int fd) {
  TerminalStyle style;
  if (isatty(fd) != 0) style.depth = color_depth();
  style.width = terminal_width(fd);
  style.utf8 = is_utf8_locale();
  return style;
}

std::string sanitize_for_terminal(std::string_view text) { return unicode::legible(text); }

}}  // namespace heed::v0
