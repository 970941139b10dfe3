// Draws a figure with a given layout.
#pragma once

#include "heed/viz/figure.h"
#include "viz/figure/canvas.h"
#include "viz/figure/layout.h"

namespace heed { inline namespace v0 { namespace figure {

void paint(const Figure& figure, const FigurePlan& plan, const Fonts& fonts, Canvas& canvas);

}}}  // namespace heed::v0::figure
