#include "heed/viz/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

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

namespace {

constexpr int kMostDecimals = 17;

void check(const Shape& shape, const MatrixFormat& format) {
  if (shape.rank() != 1 && shape.rank() != 2) {
    throw InvalidArgument(fmt::format("render_matrix: the shape is {}, expected a vector or matrix",
                                      to_string(shape)));
  }
  if (format.decimals < 0 || format.decimals > kMostDecimals) {
    throw InvalidArgument(fmt::format("render_matrix: decimals is {}, expected 0 to {}",
                                      format.decimals, kMostDecimals));
  }
  const std::int64_t rows = shape.rank() == 2 ? shape[0] : 1;
  const auto labels = static_cast<std::int64_t>(format.row_labels.size());
  if (labels != 0 && labels != rows) {
    throw InvalidArgument(
        fmt::format("render_matrix: {} row labels were given for {} rows", labels, rows));
  }
}

// The labels, padded with spaces to one width, and a space after each.
std::vector<std::string> label_column(std::span<const std::string> labels, std::size_t rows) {
  std::vector<std::string> column(rows);
  int width = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    column[i] = sanitize_for_terminal(labels[i]);
    width = std::max(width, unicode::columns(column[i]) + 1);
  }
  for (std::string& label : column) {
    label.append(static_cast<std::size_t>(width - unicode::columns(label)), ' ');
  }
  return column;
}

template <class T>
std::string render(TensorView<const T> matrix, const MatrixFormat& format) {
  check(matrix.shape(), format);
  const std::int64_t row_length = matrix.extent(-1);
  const std::int64_t rows = matrix.rank() == 2 ? matrix.extent(0) : 1;
  std::vector<std::string> numbers;
  std::size_t width = 0;
  for_each_element(matrix, [&](T value) {
    // The sign of a NaN has no meaning and differs between processors.
    const T shown = std::isnan(value) ? std::numeric_limits<T>::quiet_NaN() : value;
    numbers.push_back(fmt::format("{: .{}f}", shown, format.decimals));
    width = std::max(width, numbers.back().size());
  });
  std::string text;
  auto number = numbers.begin();
  for (const std::string& label : label_column(format.row_labels, static_cast<std::size_t>(rows))) {
    text += label + '[';
    for (std::int64_t column = 0; column < row_length; ++column) {
      text += fmt::format("{}{:>{}}", column == 0 ? "" : " ", *number++, width);
    }
    text += "]\n";
  }
  return text;
}

}  // namespace

std::string render_matrix(TensorView<const float> matrix, const MatrixFormat& format) {
  return render(matrix, format);
}

std::string render_matrix(TensorView<const double> matrix, const MatrixFormat& format) {
  return render(matrix, format);
}

}}  // namespace heed::v0
