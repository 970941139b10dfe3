// Colours of weights: the scale of a panel, and its colour bar.
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
