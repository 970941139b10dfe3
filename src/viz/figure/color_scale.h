// Weights to colours: the scale of a panel, and the bar that explains it.
#pragma once

#include <vector>

#include "heed/viz/attention_figure.h"
#include "heed/viz/figure.h"
#include "viz/figure/pool.h"

namespace heed::inline v0::figure {

struct ColorRange {
  ColorMap map = ColorMap::kViridis;
  ColorScale scale = ColorScale::kLinear;
  float max = 1;  // positive

  bool is_signed() const { return map == ColorMap::kRdBu; }
};

// The largest magnitude among what is neither masked nor NaN; 0 where there is none.
float largest_magnitude(const Grid& grid);

// The grid's cells, masked ones hatched. With 0 or more decimals the values are their texts, unless
// the grid is pooled.
Cells color_cells(const Grid& grid, const ColorRange& range, int decimals);

ColorBar color_bar(const ColorRange& range, std::string label);

}  // namespace heed::inline v0::figure
