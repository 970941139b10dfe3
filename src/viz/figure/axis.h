// Axes with numbers: where ticks stand and what is written there.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "heed/viz/figure.h"

namespace heed { inline namespace v0 { namespace figure {

// `value` as people write it: "0.25", "1,000" as "1000", "10⁶".
std::string number(double value);

// An axis from low to high with ticks at about `count` round numbers, on a logarithmic one at
// powers of ten or at 1, 2 and 5 times these.
Axis number_axis(std::string label, double low, double high, bool is_log = false, int count = 6);

// An axis of `extent` cells, named by `labels` or, without, by their indices from `first`; each
// cell stands for `block` of them. For rows, which are counted from the top, `is_flipped`.
struct Categories {
  std::span<const std::string> labels = {};
  std::int64_t extent = 0;
  std::int64_t block = 1;
  std::int64_t first = 0;
};
Axis category_axis(std::string label, const Categories& categories, bool is_flipped = false);

// Where on the axis `value` lies, 0 at its low end, 1 at its high end.
double place(const Axis& axis, double value);

}}}  // namespace heed::v0::figure
