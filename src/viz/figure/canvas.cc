#include "viz/figure/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numbers>

#include "viz/figure/palette.h"

namespace heed { inline namespace v0 { namespace figure {
namespace {

constexpr double kHatchSpacing = 6;
constexpr int kPixelsPerUnit = 2;  // of images

std::uint32_t pixel(Rgb color) {
  return std::uint32_t{color.red} << 16U | std::uint32_t{color.green} << 8U | color.blue;
}

// The pixels of the lines that Canvas::hatch draws.
std::uint32_t hatch_pixel(int x, int y, const Palette& colors) {
  constexpr int kPeriod = static_cast<int>(kHatchSpacing) * kPixelsPerUnit;
  return pixel((x + y) % kPeriod < kPixelsPerUnit ? colors.hatching : colors.hatched);
}

}  // namespace

Canvas::Canvas(cairo_surface_t* surface, const Fonts& fonts, Theme theme)
    : cairo_(cairo_create(surface)), fonts_(fonts), theme_(theme) {
  cairo_set_line_join(cairo_.get(), CAIRO_LINE_JOIN_ROUND);
}

void Canvas::set_color(Rgb color) {
  cairo_set_source_rgb(cairo_.get(), color.red / 255.0, color.green / 255.0, color.blue / 255.0);
}

void Canvas::text(std::string_view text, Point at, const TextStyle& style, Anchor anchor) {
  const auto layout = fonts_.lay_out(text, style);
  PangoRectangle logical;
  pango_layout_get_extents(layout.get(), nullptr, &logical);
  const double scale = PANGO_SCALE;
  cairo_save(cairo_.get());
  cairo_translate(cairo_.get(), at.x, at.y);
  cairo_rotate(cairo_.get(), -anchor.angle * std::numbers::pi / 180);
  cairo_move_to(cairo_.get(), -(logical.x + anchor.x * logical.width) / scale,
                -(logical.y + anchor.y * logical.height) / scale);
  set_color(style.color);
  pango_cairo_show_layout(cairo_.get(), layout.get());
  cairo_new_path(cairo_.get());
  cairo_restore(cairo_.get());
}

void Canvas::fill(const Box& box, Rgb color) {
  cairo_rectangle(cairo_.get(), box.x, box.y, box.width, box.height);
  set_color(color);
  cairo_fill(cairo_.get());
}

void Canvas::fill(std::span<const Point> polygon, Rgb color) {
  for (const Point& point : polygon) cairo_line_to(cairo_.get(), point.x, point.y);
  set_color(color);
  cairo_fill(cairo_.get());
}

void Canvas::line(std::span<const Point> points, const Stroke& stroke) {
  constexpr std::array<double, 2> kDashes{5, 3};
  for (const Point& point : points) cairo_line_to(cairo_.get(), point.x, point.y);
  set_color(stroke.color);
  cairo_set_line_width(cairo_.get(), stroke.width);
  cairo_set_dash(cairo_.get(), kDashes.data(), stroke.is_dashed ? kDashes.size() : 0, 0);
  cairo_stroke(cairo_.get());
}

void Canvas::outline(const Box& box, const Stroke& stroke) {
  cairo_rectangle(cairo_.get(), box.x, box.y, box.width, box.height);
  set_color(stroke.color);
  cairo_set_line_width(cairo_.get(), stroke.width);
  cairo_set_dash(cairo_.get(), nullptr, 0, 0);
  cairo_stroke(cairo_.get());
}

void Canvas::hatch(std::span<const Box> boxes) {
  if (boxes.empty()) return;
  const Palette& colors = palette(theme_);
  Box bounds = boxes.front();
  cairo_save(cairo_.get());
  for (const Box& box : boxes) {
    cairo_rectangle(cairo_.get(), box.x, box.y, box.width, box.height);
    const double right = std::max(bounds.right(), box.right());
    const double bottom = std::max(bounds.bottom(), box.bottom());
    bounds.x = std::min(bounds.x, box.x);
    bounds.y = std::min(bounds.y, box.y);
    bounds.width = right - bounds.x;
    bounds.height = bottom - bounds.y;
  }
  set_color(colors.hatched);
  cairo_fill_preserve(cairo_.get());
  cairo_clip(cairo_.get());
  for (double x = bounds.x + kHatchSpacing / 2; x < bounds.right() + bounds.height;
       x += kHatchSpacing) {
    cairo_move_to(cairo_.get(), x, bounds.y);
    cairo_line_to(cairo_.get(), x - bounds.height, bounds.bottom());
  }
  set_color(colors.hatching);
  cairo_set_line_width(cairo_.get(), 1);
  cairo_set_dash(cairo_.get(), nullptr, 0, 0);
  cairo_stroke(cairo_.get());
  cairo_restore(cairo_.get());
}

void Canvas::gradient(const Box& box, std::span<const Rgb> colors) {
  cairo_pattern_t* pattern = cairo_pattern_create_linear(0, box.bottom(), 0, box.y);
  for (std::size_t i = 0; i < colors.size(); ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(colors.size() - 1);
    cairo_pattern_add_color_stop_rgb(pattern, place, colors[i].red / 255.0, colors[i].green / 255.0,
                                     colors[i].blue / 255.0);
  }
  cairo_rectangle(cairo_.get(), box.x, box.y, box.width, box.height);
  cairo_set_source(cairo_.get(), pattern);
  cairo_fill(cairo_.get());
  cairo_pattern_destroy(pattern);
}

void Canvas::image(const Box& box, const Cells& cells) {
  const int width = static_cast<int>(box.width) * kPixelsPerUnit;
  const int height = static_cast<int>(box.height) * kPixelsPerUnit;
  cairo_surface_t* surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
  if (cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS) {
    unsigned char* line = cairo_image_surface_get_data(surface);
    for (int y = 0; y < height; ++y, line += cairo_image_surface_get_stride(surface)) {
      const std::int64_t row = y * cells.rows / height;
      for (int x = 0; x < width; ++x) {
        const auto cell = static_cast<std::size_t>(row * cells.columns + x * cells.columns / width);
        const bool is_hatched = !cells.is_hatched.empty() && cells.is_hatched[cell];
        const std::uint32_t color =
            is_hatched ? hatch_pixel(x, y, palette(theme_)) : pixel(cells.colors[cell]);
        std::memcpy(line + 4 * static_cast<std::ptrdiff_t>(x), &color, sizeof color);
      }
    }
    cairo_surface_mark_dirty(surface);
  }
  cairo_save(cairo_.get());
  cairo_translate(cairo_.get(), box.x, box.y);
  cairo_scale(cairo_.get(), 1.0 / kPixelsPerUnit, 1.0 / kPixelsPerUnit);
  cairo_set_source_surface(cairo_.get(), surface, 0, 0);
  cairo_pattern_set_filter(cairo_get_source(cairo_.get()), CAIRO_FILTER_NEAREST);
  cairo_paint(cairo_.get());
  cairo_restore(cairo_.get());
  cairo_surface_destroy(surface);
}

void Canvas::clip(const Box& box) {
  cairo_save(cairo_.get());
  cairo_rectangle(cairo_.get(), box.x, box.y, box.width, box.height);
  cairo_clip(cairo_.get());
}

void Canvas::unclip() { cairo_restore(cairo_.get()); }

}}}  // namespace heed::v0::figure
