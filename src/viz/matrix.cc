#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "heed/viz/terminal.h"
#include "io/unicode.h"

namespace heed { inline namespace v0 {
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
