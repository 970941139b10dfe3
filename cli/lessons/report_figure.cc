#include "lessons/report_figure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace heed::cli {

namespace {

constexpr float kHiding = -1e8F;  // what is below was put there by a mask

bool is_weights(FloatView matrix) {
  for (std::int64_t row = 0; row < matrix.extent(0); ++row) {
    double sum = 0;
    bool is_any_negative = false;
    for_each_element(matrix.select(0, row), [&](float value) {
      sum += value;
      is_any_negative = is_any_negative || value < 0;
    });
    constexpr double kRounding = 1e-3;
    if (is_any_negative || std::abs(sum - 1) > kRounding) return false;
  }
  return true;
}

Panel draw_matrix(const Report::Matrix& matrix, const PictureArguments& arguments) {
  Tensor<float> values = matrix.values;
  for (float& value : values.elements()) {
    if (value < kHiding) value = -std::numeric_limits<float>::infinity();
  }
  AttentionFigureOptions options = figure_options(arguments);
  options.queries = matrix.row_labels;
  options.query_title = "row";
  options.key_title = "column";
  options.decimals = std::min(matrix.decimals, 2);
  if (is_weights(values)) {
    options.scale_max = 1;
  } else {
    options.color_map = ColorMap::kRdBu;
  }
  Panel panel = attention_figure(values, options).panels.front();
  panel.title = matrix.title;
  if (panel.color_bar) panel.color_bar->axis.label.clear();
  return panel;
}

}  // namespace

Figure draw_matrices(const Report& report, const std::string& title,
                     const PictureArguments& arguments) {
  Figure figure{.title = title, .theme = arguments.theme()};
  for (const Report::Matrix& matrix : report.matrices()) {
    figure.panels.push_back(draw_matrix(matrix, arguments));
  }
  figure.columns = std::min<std::int64_t>(3, static_cast<std::int64_t>(figure.panels.size()));
  return figure;
}

}  // namespace heed::cli
