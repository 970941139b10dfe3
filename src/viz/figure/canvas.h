// Draws panels with cairo, in units of 1/96 inch from the top left corner.
#pragma once

#include <cairo.h>

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "heed/viz/figure.h"
#include "viz/figure/text.h"

namespace heed { inline namespace v0 { namespace figure {

struct Point {
  double x = 0;
  double y = 0;
};

struct Box {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  Point center() const { return {x + width / 2, y + height / 2}; }
};

struct Stroke {
  Rgb color;
  double width = 1;
  bool is_dashed = false;
};

// The point of a text that is placed at the given position: 0 its left or top, 0.5 its centre, 1
// its right or bottom. `angle` rotates it around that point, in degrees, counterclockwise.
struct Anchor {
  double x = 0.5;
  double y = 0.5;
  double angle = 0;
};

class Canvas {
 public:
  Canvas(cairo_surface_t* surface, const Fonts& fonts, Theme theme);

  void text(std::string_view text, Point at, const TextStyle& style, Anchor anchor = {});
  void fill(const Box& box, Rgb color);
  void fill(std::span<const Point> polygon, Rgb color);
  void line(std::span<const Point> points, const Stroke& stroke);
  void outline(const Box& box, const Stroke& stroke);
  void hatch(std::span<const Box> boxes);
  // A gradient through the colours, from the bottom to the top.
  void gradient(const Box& box, std::span<const Rgb> colors);
  // The cells of a matrix at the surface's resolution, without smoothing.
  void image(const Box& box, const Cells& cells);
  // Restricts drawing to `box` until unclip().
  void clip(const Box& box);
  void unclip();

  // The first error so far, if any.
  cairo_status_t status() const { return cairo_status(cairo_.get()); }

 private:
  struct Destroy {
    void operator()(cairo_t* cairo) const noexcept { cairo_destroy(cairo); }
  };
  void set_color(Rgb color);

  std::unique_ptr<cairo_t, Destroy> cairo_;
  const Fonts& fonts_;
  Theme theme_;
};

}}}  // namespace heed::v0::figure
