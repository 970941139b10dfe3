// Text laid out by pango: it can be measured without a surface, and looks the same on every
// surface.
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
  double max_width = 0;      // if not 0, longer text ends with an ellipsis
  bool wraps = false;        // text longer than max_width continues on a new line instead
  bool is_centered = false;  // centres each of several lines
};

// A user's text in drawable form: valid, visible, and of limited length.
std::string drawable(std::string_view text);

// The fonts of one figure: DejaVu Sans, and for characters that it lacks, any font that fontconfig
// finds. A character that no font has is drawn as a box with its code point. Independent of hinting
// and of the screen's settings.
class Fonts {
 public:
  // Throws std::runtime_error if there is no font at all.
  Fonts();

  GObject<PangoLayout> lay_out(std::string_view text, const TextStyle& style) const;
  Size size(std::string_view text, const TextStyle& style) const;

 private:
  GObject<PangoFontMap> map_;
  GObject<PangoContext> context_;
};

}}}  // namespace heed::v0::figure
