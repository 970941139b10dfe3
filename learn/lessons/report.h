// The output of a lesson: text for a reader, the same numbers by name for a program, and a picture.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "heed/core/tensor.h"
#include "heed/viz/figure.h"
#include "heed/viz/terminal.h"

namespace heed::learn {

// Draws a picture with a light or a dark background.
using Drawing = std::function<Figure(Theme)>;

class Report {
 public:
  // Makes a report of a lesson that is printed in `style`.
  explicit Report(const TerminalStyle& style = {}) : style_(style) {}
  const TerminalStyle& style() const { return style_; }

  // Prints a line unchanged, a formula or a row of a table, formatted as by fmt::format. say()
  // without arguments prints an empty line.
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> line, Arguments&&... arguments) {
    text_ += fmt::format(line, std::forward<Arguments>(arguments)...) + '\n';
  }
  void say() { text_ += '\n'; }

  // Prints text of any length, broken into lines of the style's width.
  template <class... Arguments>
  void paragraph(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    say_wrapped(fmt::format(text, std::forward<Arguments>(arguments)...), "");
  }
  // Prints text as an item of a list.
  template <class... Arguments>
  void item(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    say_wrapped(fmt::format(text, std::forward<Arguments>(arguments)...), "- ");
  }

  // Prints matrices [count, rows, columns] of weights as heatmaps with titles, each column `cell`
  // terminal columns wide, as many next to each other as the style's width allows.
  void heatmaps(const std::vector<std::string>& titles, FloatView matrices, int cell);

  // Prints the title of a numbered step.
  void step(std::string_view title);

  // Prints a vector or matrix under `title` with `decimals` decimals and records it as
  // values()[name]. Leading extents of 1 are dropped: the scores of one batch entry and one head
  // are a matrix. A vector that is too long for a line takes several.
  void show(const std::string& name, std::string_view title, FloatView values, int decimals = 4,
            const std::vector<std::string>& row_labels = {});
  void show(const std::string& name, std::string_view title, DoubleView values, int decimals = 4,
            const std::vector<std::string>& row_labels = {});

  // Prints the row sums of a matrix of weights.
  void show_row_sums(const std::string& name, FloatView weights);
  void show_row_sums(const std::string& name, DoubleView weights);

  // Records a value without printing it, for numbers that the text mentions. Numbers keep every
  // digit; non-finite ones become "nan", "inf" and "-inf".
  void record(const std::string& name, nlohmann::json value);
  void record(const std::string& name, FloatView values);
  void record(const std::string& name, DoubleView values);
  void record(const std::string& name, const Shape& shape);

  // Sets the picture, which each lesson has. It is drawn only on request.
  void draw(Drawing drawing) { drawing_ = std::move(drawing); }
  const Drawing& drawing() const { return drawing_; }

  const std::string& text() const { return text_; }
  const nlohmann::json& values() const { return values_; }

 private:
  template <class Real>
  void show_as(const std::string& name, std::string_view title, TensorView<const Real> values,
               int decimals, const std::vector<std::string>& row_labels);

  // Indents the lines after the first by the width of `mark`.
  void say_wrapped(const std::string& text, const std::string& mark);

  TerminalStyle style_;
  std::string text_;
  nlohmann::json values_ = nlohmann::json::object();
  Drawing drawing_;
  int steps_ = 0;
};

}  // namespace heed::learn
