// A figure as an HTML element.
#pragma once

#include <string>

#include "heed/viz/figure.h"

namespace heed { inline namespace v0 { namespace figure {

// The figure for the width of a phone screen: panels below each other, none wider than the screen
// allows next to its labels. A figure with very many panels is not changed.
Figure narrowed(const Figure& figure);

// A <picture> with the figure's panels as SVG, for wide and narrow screens, and if `dark` is given
// for light and dark ones. It omits title and note, which the page writes.
std::string picture_element(const Figure& figure, const Figure* dark);

}}}  // namespace heed::v0::figure
