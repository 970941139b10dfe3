// Post-processing of cairo's SVG (stable names, brevity, and a title), and a figure as an HTML
// element.
#pragma once

#include <string>
#include <string_view>

#include "heed/viz/figure.h"

namespace heed { inline namespace v0 { namespace figure {

// Renumbers definitions in the order of the document; cairo numbers them in the order of the whole
// process.
std::string with_stable_names(std::string_view svg);

// The same picture in half of the bytes: without SVG's defaults, with short colours, paths and
// numbers. Changes only the attributes that hold these.
std::string compacted(std::string_view svg);

// Turns style attributes, which a Content-Security-Policy forbids in pages, into separate
// attributes.
std::string without_styles(std::string_view svg);

// Escapes text for an element of SVG or HTML.
std::string escaped(std::string_view text);

// Adds `title`, any valid text, to the document for screen readers.
std::string with_title(std::string svg, std::string_view title);

// The figure for the width of a phone screen: panels below each other, none wider than the screen
// allows next to its labels. A figure with very many panels is not changed.
Figure narrowed(const Figure& figure);

// A <picture> with the figure's panels as SVG, for wide and narrow screens, and if `dark` is given
// for light and dark ones. It omits title and note, which the page writes.
std::string picture_element(const Figure& figure, const Figure* dark);

}}}  // namespace heed::v0::figure
