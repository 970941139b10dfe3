// What a lesson says and shows: text for a reader, the same numbers by name for a program, and a
// picture.
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

// A picture on a light or a dark ground.
using Drawing = std::function<Figure(Theme)>;

class Report {
 public:
  // Of a lesson that is printed in this style.
  explicit Report(const TerminalStyle& style = {}) : style_(style) {}
  const TerminalStyle& style() const { return style_; }

  // A line as it stands, a formula or a row of a table, formatted as by fmt::format; say() alone is
  // an empty line.
  template <class... Arguments>
  void say(fmt::format_string<Arguments...> line, Arguments&&... arguments) {
    text_ += fmt::format(line, std::forward<Arguments>(arguments)...) + '\n';
  }
  void say() { text_ += '\n'; }

  // The same for text of any length, on lines as wide as the style allows.
  template <class... Arguments>
  void paragraph(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    say_wrapped(fmt::format(text, std::forward<Arguments>(arguments)...), "");
  }
  // As an item of a list.
  template <class... Arguments>
  void item(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
    say_wrapped(fmt::format(text, std::forward<Arguments>(arguments)...), "- ");
  }

  // Matrices [count, rows, columns] of weights as pictures with titles, each column so many columns
  // of the terminal wide, next to each other as far as the style's width goes.
  void heatmaps(const std::vector<std::string>& titles, FloatView matrices, int cell);

  // A numbered step with its title.
  void step(std::string_view title);

  // A vector or matrix under `title` with so many decimals, recorded as values()[name]. Leading
  // extents of 1 are dropped: the scores of one batch entry and one head are a matrix. A vector
  // that is too long for a line takes several.
  void show(const std::string& name, std::string_view title, FloatView values, int decimals = 4,
            const std::vector<std::string>& row_labels = {});
  void show(const std::string& name, std::string_view title, DoubleView values, int decimals = 4,
            const std::vector<std::string>& row_labels = {});

  // The sums of the rows of a matrix of weights.
  void show_row_sums(const std::string& name, FloatView weights);
  void show_row_sums(const std::string& name, DoubleView weights);

  // Recorded without being printed: what the text mentions in passing. Numbers keep every digit;
  // those that are not finite become "nan", "inf" and "-inf".
  void record(const std::string& name, nlohmann::json value);
  void record(const std::string& name, FloatView values);
  void record(const std::string& name, DoubleView values);
  void record(const std::string& name, const Shape& shape);

  // The picture of the lesson, which each lesson has. It is drawn only when it is asked for.
  void draw(Drawing drawing) { drawing_ = std::move(drawing); }
  const Drawing& drawing() const { return drawing_; }

  const std::string& text() const { return text_; }
  const nlohmann::json& values() const { return values_; }

 private:
  template <class Real>
  void show_as(const std::string& name, std::string_view title, TensorView<const Real> values,
               int decimals, const std::vector<std::string>& row_labels);

  // The lines after the first are indented as far as `mark` is wide.
  void say_wrapped(const std::string& text, const std::string& mark);

  TerminalStyle style_;
  std::string text_;
  nlohmann::json values_ = nlohmann::json::object();
  Drawing drawing_;
  int steps_ = 0;
};

}  // namespace heed::learn
