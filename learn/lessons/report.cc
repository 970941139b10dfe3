#include "lessons/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "heed/viz/layout.h"
#include "heed/viz/terminal.h"

namespace heed::learn {

namespace {

// Non-finite numbers become texts, because JSON has no name for them.
template <class Real>
nlohmann::json number(Real value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

// Returns nested lists of numbers, as deep as the tensor's rank.
template <class Real>
nlohmann::json recorded_lists(TensorView<const Real> view) {
  if (view.rank() == 0) return number(*view.data());
  auto list = nlohmann::json::array();
  for (std::int64_t i = 0; i < view.extent(0); ++i)
    list.push_back(recorded_lists(view.select(0, i)));
  return list;
}

nlohmann::json with_names_for_nonfinite(nlohmann::json value) {
  if (value.is_number_float()) return number(value.get<double>());
  if (value.is_structured()) {
    for (auto& element : value) element = with_names_for_nonfinite(std::move(element));
  }
  return value;
}

// Drops leading extents of 1: [1, 1, rows, columns] becomes a matrix.
template <class Real>
TensorView<const Real> without_leading_ones(TensorView<const Real> view) {
  while (view.rank() > 2 && view.extent(0) == 1) view = view.select(0, 0);
  return view;
}

constexpr int kIndent = 2;

std::string indented(const std::string& block) {
  std::string result;
  std::size_t begin = 0;
  while (begin < block.size()) {
    const std::size_t end = std::min(block.find('\n', begin), block.size() - 1);
    result += std::string(kIndent, ' ') + block.substr(begin, end - begin + 1);
    begin = end + 1;
  }
  return result;
}

// Breaks a line such as "[1 2 3 4]" between numbers into lines of at most `width` columns.
std::string broken(const std::string& line, int width) {
  std::string result;
  int used = 0;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t number = line.find_first_not_of(' ', at);
    const std::size_t end = std::min(line.find(' ', std::min(number, line.size())), line.size());
    const int columns = static_cast<int>(end - at);
    if (used > 0 && used + columns > width) {
      result += '\n';
      used = 0;
    }
    result += line.substr(at, end - at);
    used += columns;
    at = end;
  }
  return result;
}

template <class Real>
Tensor<Real> row_sums(TensorView<const Real> matrix) {
  Tensor<Real> sums({matrix.extent(0)});
  for (std::int64_t row = 0; row < matrix.extent(0); ++row) {
    for_each_element(matrix.select(0, row), [&](Real element) { sums(row) += element; });
  }
  return sums;
}

}  // namespace

void Report::say_wrapped(const std::string& text, const std::string& mark) {
  const std::string lines = wrap_text(text, style_.width - static_cast<int>(mark.size()));
  std::string margin = mark;
  for (std::size_t begin = 0; begin < lines.size();) {
    const std::size_t end = lines.find('\n', begin) + 1;
    text_ += margin + lines.substr(begin, end - begin);
    margin = std::string(mark.size(), ' ');
    begin = end;
  }
}

void Report::heatmaps(const std::vector<std::string>& titles, FloatView matrices, int cell) {
  constexpr int kBetween = 2;
  constexpr int kRowLabels = 2;
  TerminalStyle panel = style_;
  panel.width = kRowLabels + cell * static_cast<int>(matrices.extent(2));
  std::vector<std::string> row;
  int used = 0;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    const FloatView matrix = matrices.select(0, static_cast<std::int64_t>(i));
    if (used > 0 && used + kBetween + panel.width > style_.width) {
      text_ += side_by_side(row, kBetween);
      row.clear();
      used = 0;
    }
    row.push_back(titles[i] + '\n' + render_heatmap(matrix, {}, panel, {.legend = false}));
    used += (used > 0 ? kBetween : 0) + panel.width;
  }
  text_ += side_by_side(row, kBetween);
}

void Report::step(std::string_view title) { text_ += fmt::format("\n{}. {}\n\n", ++steps_, title); }

void Report::show(const std::string& name, std::string_view title, FloatView values, int decimals,
                  const std::vector<std::string>& row_labels) {
  show_as(name, title, values, decimals, row_labels);
}

void Report::show(const std::string& name, std::string_view title, DoubleView values, int decimals,
                  const std::vector<std::string>& row_labels) {
  show_as(name, title, values, decimals, row_labels);
}

void Report::show_row_sums(const std::string& name, FloatView weights) {
  show(name, "The sum of each row:", row_sums(without_leading_ones(weights)));
}

void Report::show_row_sums(const std::string& name, DoubleView weights) {
  show(name, "The sum of each row:", row_sums(without_leading_ones(weights)));
}

void Report::record(const std::string& name, nlohmann::json value) {
  values_[name] = with_names_for_nonfinite(std::move(value));
}
void Report::record(const std::string& name, FloatView values) {
  values_[name] = recorded_lists(values);
}
void Report::record(const std::string& name, DoubleView values) {
  values_[name] = recorded_lists(values);
}
void Report::record(const std::string& name, const Shape& shape) {
  values_[name] = std::vector<std::int64_t>(shape.begin(), shape.end());
}

template <class Real>
void Report::show_as(const std::string& name, std::string_view title, TensorView<const Real> values,
                     int decimals, const std::vector<std::string>& row_labels) {
  values = without_leading_ones(values);
  say("{}", title);
  std::string numbers = render_matrix(values, {.decimals = decimals, .row_labels = row_labels});
  if (values.rank() == 1) numbers = broken(numbers, style_.width - kIndent);
  text_ += indented(numbers);
  record(name, values);
}

}  // namespace heed::learn
