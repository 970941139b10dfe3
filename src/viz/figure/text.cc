#include "viz/figure/text.h"

#include <cmath>
#include <memory>
#include <stdexcept>

#include "io/unicode.h"

namespace heed { inline namespace v0 { namespace figure {
namespace {

constexpr int kMaxColumns = 400;
constexpr std::size_t kMaxBytes = 8192;

struct FreeDescription {
  void operator()(PangoFontDescription* font) const noexcept { pango_font_description_free(font); }
};
using FontDescription = std::unique_ptr<PangoFontDescription, FreeDescription>;

FontDescription font_of(double size, bool is_bold) {
  FontDescription font(pango_font_description_new());
  pango_font_description_set_family_static(font.get(), "DejaVu Sans,sans-serif");
  pango_font_description_set_absolute_size(font.get(), std::round(size * PANGO_SCALE));
  pango_font_description_set_weight(font.get(), is_bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
  return font;
}

}  // namespace

std::string drawable(std::string_view text) {
  const bool is_long = text.size() > kMaxBytes;
  const std::string legible = unicode::legible(text.substr(0, kMaxBytes));
  const std::string_view start = unicode::prefix_of_columns(legible, kMaxColumns);
  return std::string(start) + (is_long || start.size() < legible.size() ? "…" : "");
}

Fonts::Fonts()
    : map_(pango_cairo_font_map_new()), context_(pango_font_map_create_context(map_.get())) {
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  pango_cairo_context_set_font_options(context_.get(), options);
  cairo_font_options_destroy(options);
  pango_cairo_context_set_resolution(context_.get(), 96);
  pango_context_set_round_glyph_positions(context_.get(), FALSE);
  pango_context_set_language(context_.get(), pango_language_from_string("en"));

  // Without a font pango would draw a box for each letter.
  const TextStyle any;
  const GObject<PangoFont> font(
      pango_font_map_load_font(map_.get(), context_.get(), font_of(any.size, any.is_bold).get()));
  if (font == nullptr) {
    throw std::runtime_error(
        "figures: fontconfig finds no font to write with; install one, such as DejaVu Sans "
        "(Debian's fonts-dejavu-core); 'fc-list' lists those that it finds");
  }
}

GObject<PangoLayout> Fonts::lay_out(std::string_view text, const TextStyle& style) const {
  GObject<PangoLayout> layout(pango_layout_new(context_.get()));
  pango_layout_set_font_description(layout.get(), font_of(style.size, style.is_bold).get());
  if (style.max_width > 0) {
    pango_layout_set_width(layout.get(),
                           static_cast<int>(std::ceil(style.max_width)) * PANGO_SCALE);
    if (style.wraps) {
      pango_layout_set_wrap(layout.get(), PANGO_WRAP_WORD_CHAR);
    } else {
      pango_layout_set_ellipsize(layout.get(), PANGO_ELLIPSIZE_END);
    }
  }
  if (style.is_centered) pango_layout_set_alignment(layout.get(), PANGO_ALIGN_CENTER);
  const std::string shown = drawable(text);
  pango_layout_set_text(layout.get(), shown.data(), static_cast<int>(shown.size()));
  return layout;
}

Size Fonts::size(std::string_view text, const TextStyle& style) const {
  PangoRectangle logical;
  pango_layout_get_extents(lay_out(text, style).get(), nullptr, &logical);
  return {logical.width / static_cast<double>(PANGO_SCALE),
          logical.height / static_cast<double>(PANGO_SCALE)};
}

}}}  // namespace heed::v0::figure
