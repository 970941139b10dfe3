// The scales of figures: axes with numbers and the places and labels of their ticks; colours of
// weights and their bars.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "heed/viz/attention_figure.h"
#include "heed/viz/figure.h"
#include "viz/figure/matrix_panel.h"

namespace heed { inline namespace v0 { namespace figure {

// `value` in a usual notation: "0.25", "1000" without a comma, "10⁶".
std::string number(double value);

// An axis from low to high with ticks at about `count` round numbers; on a logarithmic axis, at
// powers of ten or at 1, 2 and 5 times them.
Axis number_axis(std::string label, double low, double high, bool is_log = false, int count = 6);

// An axis of `extent` cells, labelled by `labels` or, if empty, by indices from `first`; each cell
// stands for `block` of them. `is_flipped` is for rows, which are counted from the top.
struct Categories {
  std::span<const std::string> labels = {};
  std::int64_t extent = 0;
  std::int64_t block = 1;
  std::int64_t first = 0;
};
Axis category_axis(std::string label, const Categories& categories, bool is_flipped = false);

// The position of `value` on the axis, 0 at its low end, 1 at its high end.
double place(const Axis& axis, double value);

struct ColorRange {
  ColorMap map = ColorMap::kViridis;
  ColorScale scale = ColorScale::kLinear;
  float max = 1;           // positive
  bool is_signed = false;  // the scale begins at −max, otherwise at 0
  Theme theme = Theme::kLight;
};

// The colour at a position of the map, from 0 to 1. Large values contrast with the background: on a
// dark one, maps that end dark are reversed, and the map with a bright middle gets a dark middle.
Rgb color_at(const ColorRange& range, float position);

// The largest magnitude that is neither masked nor NaN; 0 if there is none.
float largest_magnitude(const Grid& grid);

// True if any number that is not masked is below 0.
bool has_negative(const Grid& grid);

// The grid's cells; masked ones are hatched. If decimals ≥ 0 and the grid is not pooled, the cells
// show their values.
Cells color_cells(const Grid& grid, const ColorRange& range, int decimals);

ColorBar color_bar(const ColorRange& range, std::string label);

}}}  // namespace heed::v0::figure
