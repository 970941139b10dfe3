// The libraries with which the golden files in tests/data/figures were drawn.
#pragma once

#include <string>

#include "viz/figure/text.h"

namespace heed::testing_support {

// Other versions have slightly different outlines and sizes of letters.
inline constexpr const char* kGoldenVersions = "cairo 1.16.0, pango 1.50.12, DejaVu Sans";

inline std::string drawing_versions() {
  const figure::Fonts fonts;
  const auto layout = fonts.lay_out("x", {});
  const figure::GObject<PangoFont> font(pango_context_load_font(
      pango_layout_get_context(layout.get()), pango_layout_get_font_description(layout.get())));
  PangoFontDescription* description = pango_font_describe(font.get());
  const std::string family = pango_font_description_get_family(description);
  pango_font_description_free(description);
  return std::string("cairo ") + cairo_version_string() + ", pango " + pango_version_string() +
         ", " + family;
}

}  // namespace heed::testing_support
