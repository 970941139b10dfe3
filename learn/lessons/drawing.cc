#include "lessons/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "heed/core/convert.h"
#include "heed/viz/attention_figure.h"

namespace heed::learn {

namespace {

constexpr std::int64_t kPlot = 336;      // the wanted width and height of the largest matrix
constexpr std::int64_t kRowWidth = 940;  // the total width of matrices in a row
constexpr std::int64_t kColumnHeight = 680;
constexpr std::int64_t kBeside = 56;  // the width of a matrix's labels and the gap to the next
constexpr std::int64_t kAbove = 84;   // the height of a matrix's title, labels and gap
constexpr std::int64_t kMinCell = 12;
constexpr std::int64_t kMaxCell = 56;

template <class Real>
Tensor<float> matrix_from_any(TensorView<const Real> values) {
  while (values.rank() > 2) values = values.select(0, 0);
  return converted<float>(values).reshaped(values.rank() == 1 ? Shape{1, values.extent(0)}
                                                              : values.shape());
}

std::int64_t columns_of(const MatricesPicture& picture) {
  return picture.columns == 0 ? static_cast<std::int64_t>(picture.matrices.size())
                              : picture.columns;
}

// Returns the size of all cells: the largest with which the picture fits a page.
std::int64_t cell_of(const MatricesPicture& picture) {
  std::int64_t most = 1;
  for (const DrawnMatrix& matrix : picture.matrices) {
    most = std::max({most, matrix.values.extent(0), matrix.values.extent(1)});
  }
  const std::int64_t columns = columns_of(picture);
  const auto rows = (static_cast<std::int64_t>(picture.matrices.size()) + columns - 1) / columns;
  const std::int64_t plot =
      std::min({kPlot, kRowWidth / columns - kBeside, kColumnHeight / rows - kAbove});
  return std::clamp(plot / most, kMinCell, kMaxCell);
}

Panel draw_matrix(const DrawnMatrix& matrix, const MatricesPicture& picture, Theme theme) {
  AttentionFigureOptions options{.queries = matrix.queries,
                                 .keys = matrix.keys,
                                 .query_title = matrix.query_title,
                                 .key_title = matrix.key_title,
                                 .color_map = ColorMap::kBlues,
                                 .decimals = picture.decimals,
                                 .theme = theme};
  if (!matrix.visible.empty()) options.visible = matrix.visible;
  if (picture.is_signed) {
    options.color_map = ColorMap::kRdBu;
  } else {
    options.scale_max = 1;
  }
  Panel panel = attention_figure(matrix.values, options).panels.front();
  const std::int64_t cell = cell_of(picture);
  panel.width = static_cast<int>(cell * matrix.values.extent(1));
  panel.height = static_cast<int>(cell * matrix.values.extent(0));
  panel.title = matrix.title;
  return panel;
}

}  // namespace

Tensor<float> matrix_from(FloatView values) { return matrix_from_any(values); }
Tensor<float> matrix_from(DoubleView values, int decimals) {
  Tensor<double> rounded = to_tensor(values);
  for (double& value : rounded.elements()) {
    if (std::isfinite(value)) value = std::stod(fmt::format("{:.{}f}", value, decimals));
  }
  return matrix_from_any(DoubleView(rounded));
}

Drawing drawing_of(MatricesPicture picture) {
  return [picture = std::move(picture)](Theme theme) {
    Figure figure{.title = picture.title, .note = picture.note, .theme = theme};
    const auto count = static_cast<std::int64_t>(picture.matrices.size());
    figure.columns = columns_of(picture);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto& matrix = picture.matrices[static_cast<std::size_t>(i)];
      Panel panel = draw_matrix(matrix, picture, theme);
      const bool ends_row = (i + 1) % figure.columns == 0 || i + 1 == count;
      panel.color_bar->axis.label = matrix.bar_title.empty() ? picture.bar_title : matrix.bar_title;
      if (!picture.is_signed && !ends_row) panel.color_bar.reset();
      figure.panels.push_back(std::move(panel));
    }
    return figure;
  };
}

Figure join(const JoinedPanels& joined, std::vector<Figure> figures, Theme theme) {
  Figure result{.title = joined.title,
                .note = joined.note,
                .columns = static_cast<std::int64_t>(figures.size()),
                .theme = theme};
  for (Figure& figure : figures) {
    for (Panel& panel : figure.panels) {
      panel.title = figure.title;
      panel.width = joined.width;
      panel.height = joined.height;
      result.panels.push_back(std::move(panel));
    }
  }
  return result;
}

}  // namespace heed::learn
