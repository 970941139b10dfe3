// A figure as the element of a page that shows it.
#pragma once

#include <string>

#include "heed/viz/figure.h"

namespace heed { inline namespace v0 { namespace figure {

// The figure as it fits a screen as wide as a telephone: one panel below the other, none wider than
// the screen has room for beside its labels. A figure of so many panels that nobody would look
// through them stays as it is.
Figure narrowed(const Figure& figure);

// <picture> with the figure's panels as SVG, for wide screens and narrow ones, and where `dark` is
// given for screens of either kind. Title and note are the page's to write.
std::string picture_element(const Figure& figure, const Figure* dark);

}}}  // namespace heed::v0::figure
