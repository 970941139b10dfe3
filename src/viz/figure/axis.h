// Axes with numbers: the places and labels of ticks.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heed/viz/figure.h"

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

}}}  // namespace heed::v0::figure
