// Weights to colours: the scale of a panel, and the bar that explains it.
#pragma once

#include <vector>

#include "heed/viz/attention_figure.h"
#include "heed/viz/figure.h"
#include "viz/figure/pool.h"

namespace heed { inline namespace v0 { namespace figure {

struct ColorRange {
  ColorMap map = ColorMap::kViridis;
  ColorScale scale = ColorScale::kLinear;
  float max = 1;           // positive
  bool is_signed = false;  // from −max, or else from 0
  Theme theme = Theme::kLight;
};

// The colour at a position of the map, from 0 to 1. What is strong stands out from the ground: on a
// dark one, maps that end dark run the other way round, and the one with a bright middle gets a
// dark one.
Rgb color_at(const ColorRange& range, float position);

// The largest magnitude among what is neither masked nor NaN; 0 where there is none.
float largest_magnitude(const Grid& grid);

// Whether any number is below 0, masked ones aside.
bool has_negative(const Grid& grid);

// The grid's cells, masked ones hatched. With 0 or more decimals the values are their texts, unless
// the grid is pooled.
Cells color_cells(const Grid& grid, const ColorRange& range, int decimals);

ColorBar color_bar(const ColorRange& range, std::string label);

}}}  // namespace heed::v0::figure
