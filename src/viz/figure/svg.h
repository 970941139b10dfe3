// What cairo's SVG lacks: names that do not depend on what was drawn before, brevity, and a title.
#pragma once

#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace figure {

// Cairo numbers what it defines in the order of the whole process. Here each definition is numbered
// in the order of its document.
std::string with_stable_names(std::string_view svg);

// The same picture in half of the bytes: without what is SVG's default, with short colours, paths
// and numbers. Only attributes that hold these are touched.
std::string compacted(std::string_view svg);

// Style attributes, which a Content-Security-Policy forbids in pages, as attributes of their own.
std::string without_styles(std::string_view svg);

// Text as it stands within an element of SVG or HTML.
std::string escaped(std::string_view text);

// The document with `title`, any valid text, for those who hear the picture.
std::string with_title(std::string svg, std::string_view title);

}}}  // namespace heed::v0::figure
