// Text as pango lays it out: measured before there is a surface, and drawn the same on each.
#pragma once

#include <pango/pangocairo.h>

#include <memory>
#include <string>
#include <string_view>

#include "heed/viz/colormap.h"

namespace heed { inline namespace v0 { namespace figure {

struct Unref {
  void operator()(void* object) const noexcept { g_object_unref(object); }
};
template <class T>
using GObject = std::unique_ptr<T, Unref>;

struct Size {
  double width = 0;
  double height = 0;
};

struct TextStyle {
  double size = 11;
  Rgb color = {};
  bool is_bold = false;
  double max_width = 0;      // 0: any; beyond it the end becomes an ellipsis
  bool wraps = false;        // beyond max_width a new line begins instead
  bool is_centered = false;  // of several lines, each in the middle
};

// What a user's text is drawn as: valid, visible, and not longer than anyone reads.
std::string drawable(std::string_view text);

// The fonts of one figure: DejaVu Sans, and for characters that it has not whatever fontconfig
// finds; what no font has becomes a box with the code point. Neither hinting nor the screen's
// settings play a part.
class Fonts {
 public:
  // Throws std::runtime_error where there is no font at all.
  Fonts();

  GObject<PangoLayout> lay_out(std::string_view text, const TextStyle& style) const;
  Size size(std::string_view text, const TextStyle& style) const;

 private:
  GObject<PangoFontMap> map_;
  GObject<PangoContext> context_;
};

}}}  // namespace heed::v0::figure
