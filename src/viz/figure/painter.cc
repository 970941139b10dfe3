#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "viz/figure/layout.h"
#include "viz/figure/palette.h"
#include "viz/figure/scales.h"

namespace heed { inline namespace v0 { namespace figure {
namespace {

constexpr double kTickLength = 4;
constexpr double kSeparated = 24;      // cells of this size have a gap between them
constexpr double kLargestNumber = 14;  // larger text in cells is a single mark
constexpr double kCurveWidth = 2;
constexpr double kMarker = 3.2;  // half a marker's width

Rgb series_color(std::size_t index, const Palette& colors) {
  return colors.series[index % colors.series.size()];
}

// Curves from the eighth on are dashed.
Stroke curve_stroke(std::size_t index, const Palette& colors) {
  return {series_color(index, colors), kCurveWidth, index >= colors.series.size()};
}

class PanelPainter {
 public:
  PanelPainter(const Panel& panel, const PanelPlan& plan, const Fonts& fonts, Canvas& canvas,
               const Palette& colors)
      : panel_(panel), plan_(plan), fonts_(fonts), canvas_(canvas), colors_(colors) {}

  void paint() {
    if (panel_.has_grid) grid();
    if (panel_.cells.rows > 0) cells();
    canvas_.clip({plot().x - 1, plot().y - 1, plot().width + 2, plot().height + 2});
    bars();
    curves();
    canvas_.unclip();
    frame();
    x_axis();
    y_axis();
    title_and_legend();
    end_names();
    if (panel_.color_bar) color_bar(*panel_.color_bar);
  }

 private:
  const Box& plot() const { return plan_.plot; }
  double x_of(double value) const { return plot().x + place(panel_.x, value) * plot().width; }
  double y_of(double value) const {
    return plot().bottom() - place(panel_.y, value) * plot().height;
  }
  TextStyle style(double size, Rgb color) const { return {.size = size, .color = color}; }

  void grid() {
    const Stroke stroke{colors_.grid, 1};
    for (const Tick& tick : panel_.y.ticks) {
      const double y = y_of(tick.at);
      canvas_.line(std::array<Point, 2>{{{plot().x, y}, {plot().right(), y}}}, stroke);
    }
    if (!panel_.bars.empty()) return;
    for (const Tick& tick : panel_.x.ticks) {
      const double x = x_of(tick.at);
      canvas_.line(std::array<Point, 2>{{{x, plot().y}, {x, plot().bottom()}}}, stroke);
    }
  }

  // Adjacent cells are one image: drawn separately they would show seams.
  void cells() {
    const Cells& cells = panel_.cells;
    const double width = plot().width / static_cast<double>(cells.columns);
    const double height = plot().height / static_cast<double>(cells.rows);
    if (width < kSeparated || height < kSeparated) {
      canvas_.image(plot(), cells);
      return;
    }
    std::vector<Box> hatched;
    for (std::int64_t i = 0; i < cells.rows * cells.columns; ++i) {
      const Box box = cell_box(i, {width, height});
      if (is_hatched(i)) {
        hatched.push_back(box);
      } else {
        canvas_.fill(box, cells.colors[static_cast<std::size_t>(i)]);
      }
    }
    canvas_.hatch(hatched);
    if (!cells.texts.empty()) cell_texts({width, height});
  }

  bool is_hatched(std::int64_t cell) const {
    return !panel_.cells.is_hatched.empty() &&
           panel_.cells.is_hatched[static_cast<std::size_t>(cell)];
  }

  Box cell_box(std::int64_t cell, Size size) const {
    const std::int64_t row = cell / panel_.cells.columns;
    const std::int64_t column = cell % panel_.cells.columns;
    return {plot().x + static_cast<double>(column) * size.width,
            plot().y + static_cast<double>(row) * size.height, size.width - 1, size.height - 1};
  }

  // Draws texts at the largest of a few sizes at which all fit their cells, or not at all.
  void cell_texts(Size cell) {
    const auto& texts = panel_.cells.texts;
    const auto longest = std::max_element(
        texts.begin(), texts.end(), [this](const std::string& a, const std::string& b) {
          return fonts_.size(a, {}).width < fonts_.size(b, {}).width;
        });
    for (const double size : {20.0, 14.0, 12.0, 11.0, 10.0, 9.0, 8.0}) {
      const Size needed = fonts_.size(*longest, {.size = size});
      if (needed.width > cell.width - 4 || needed.height > cell.height) continue;
      if (size > kLargestNumber && needed.width > cell.width / 3) continue;
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const auto index = static_cast<std::int64_t>(i);
        std::optional<Rgb> cell_color;
        if (!is_hatched(index)) cell_color = panel_.cells.colors[i];
        const Rgb color = cell_text_color(cell_color, colors_);
        canvas_.text(texts[i], cell_box(index, cell).center(), style(size, color));
      }
      return;
    }
  }

  void bars() {
    const std::size_t series = panel_.bars.size();
    if (series == 0) return;
    const double slot = plot().width / std::abs(panel_.x.high - panel_.x.low);
    const double width = std::min(slot * 0.8 / static_cast<double>(series), 60.0);
    const double floor = y_of(panel_.y.is_log ? panel_.y.low : 0);
    for (std::size_t s = 0; s < series; ++s) {
      const auto& heights = panel_.bars[s].heights;
      for (std::size_t i = 0; i < heights.size(); ++i) {
        const double left = x_of(static_cast<double>(i) + 0.5) +
                            (static_cast<double>(s) - static_cast<double>(series) / 2) * width;
        const double top = y_of(heights[i]);
        canvas_.fill({left, std::min(top, floor), width - 1, std::abs(floor - top)},
                     series_color(s, colors_));
      }
    }
  }

  void curves() {
    for (std::size_t i = 0; i < panel_.curves.size(); ++i) {
      const Curve& curve = panel_.curves[i];
      std::vector<Point> line;
      for (std::size_t k = 0; k < curve.x.size(); ++k) {
        const Point point{x_of(curve.x[k]), y_of(curve.y[k])};
        if (std::isfinite(point.x) && std::isfinite(point.y)) {
          line.push_back(point);
          continue;
        }
        piece(line, curve, i);
        line.clear();
      }
      piece(line, curve, i);
    }
  }

  // A part of a curve without gaps.
  void piece(const std::vector<Point>& points, const Curve& curve, std::size_t index) {
    if (points.empty()) return;
    canvas_.line(points, curve_stroke(index, colors_));
    if (!curve.has_markers && points.size() > 1) return;
    for (const Point& point : points) marker(point, index);
  }

  // Adjacent curves have different marker shapes, because not everyone can distinguish the colours.
  void marker(Point at, std::size_t index) {
    constexpr int kCorners = 16;
    std::vector<Point> shape;
    switch (index % 4) {
      case 0:
        for (int i = 0; i < kCorners; ++i) {
          const double angle = 2 * std::numbers::pi * i / kCorners;
          shape.push_back(
              {at.x + 1.1 * kMarker * std::cos(angle), at.y + 1.1 * kMarker * std::sin(angle)});
        }
        break;
      case 1:
        shape = {{at.x - kMarker, at.y - kMarker},
                 {at.x + kMarker, at.y - kMarker},
                 {at.x + kMarker, at.y + kMarker},
                 {at.x - kMarker, at.y + kMarker}};
        break;
      case 2:
        shape = {{at.x, at.y - 1.3 * kMarker},
                 {at.x + 1.3 * kMarker, at.y + kMarker},
                 {at.x - 1.3 * kMarker, at.y + kMarker}};
        break;
      default:
        shape = {{at.x, at.y - 1.4 * kMarker},
                 {at.x + 1.4 * kMarker, at.y},
                 {at.x, at.y + 1.4 * kMarker},
                 {at.x - 1.4 * kMarker, at.y}};
    }
    canvas_.fill(shape, series_color(index, colors_));
  }

  void frame() {
    const bool has_cells = panel_.cells.rows > 0;
    const Box box{plot().x - 0.5, plot().y - 0.5, plot().width + (has_cells ? 0.0 : 1.0),
                  plot().height + (has_cells ? 0.0 : 1.0)};
    canvas_.outline(box, {has_cells ? colors_.grid : colors_.muted, 1});
  }

  void x_axis() {
    const TextStyle ticks{.size = kTickSize, .color = colors_.muted, .max_width = kMaxTickLabel};
    const double bottom = plot().bottom();
    for (std::size_t i = 0; i < panel_.x.ticks.size(); i += plan_.x.step) {
      const Tick& tick = panel_.x.ticks[i];
      const double x = x_of(tick.at);
      canvas_.line(std::array<Point, 2>{{{x, bottom}, {x, bottom + kTickLength}}},
                   {colors_.muted, 1});
      const Anchor anchor = plan_.x.angle == 0 ? Anchor{0.5, 0} : Anchor{1, 0.5, plan_.x.angle};
      canvas_.text(tick.label, {x, bottom + kGap + (plan_.x.angle == 0 ? 0 : 3)}, ticks, anchor);
    }
    const double below = plan_.x.depth + (plan_.x.depth > 0 ? kGap : 0) + kGap;
    canvas_.text(panel_.x.label, {plot().center().x, bottom + below},
                 style(kAxisTitleSize, colors_.ink), {0.5, 0});
  }

  void y_axis() {
    const TextStyle ticks{.size = kTickSize, .color = colors_.muted, .max_width = kMaxTickLabel};
    for (std::size_t i = 0; i < panel_.y.ticks.size(); i += plan_.y.step) {
      const Tick& tick = panel_.y.ticks[i];
      const double y = y_of(tick.at);
      canvas_.line(std::array<Point, 2>{{{plot().x - kTickLength, y}, {plot().x, y}}},
                   {colors_.muted, 1});
      canvas_.text(tick.label, {plot().x - kGap, y}, ticks, {1, 0.5});
    }
    const double beside = plan_.y.depth + (plan_.y.depth > 0 ? kGap : 0) + kGap;
    canvas_.text(panel_.y.label, {plot().x - beside, plot().center().y},
                 style(kAxisTitleSize, colors_.ink), {0.5, 1, 90});
  }

  void title_and_legend() {
    const double top = plot().y - plan_.legend_height;
    TextStyle title = panel_title_style(panel_);
    title.color = colors_.ink;
    if (!panel_.title.empty()) {
      canvas_.text(panel_.title, {plot().center().x, top - 7}, title, {0.5, 1});
    }
    for (const LegendEntry& entry : plan_.legend) {
      const Point at{plot().x + entry.at.x, top + entry.at.y + kLegendRow / 2};
      sample(entry.index, at);
      canvas_.text(
          entry.name, {at.x + kLegendSample + kGap, at.y},
          {.size = kLegendSize, .color = colors_.ink, .max_width = std::max(plot().width, 150.0)},
          {0, 0.5});
    }
  }

  void end_names() {
    TextStyle style = end_name_style();
    style.color = colors_.ink;
    for (const EndName& name : plan_.end_names) {
      canvas_.text(name.name, {plot().right() + kGap, plot().y + name.y}, style, {0, 0.5});
    }
  }

  // The sample before a name in the legend: it looks like the curve, bar or cell.
  void sample(std::size_t index, Point at) {
    const Box box{at.x, at.y - 6, kLegendSample, 12};
    if (index < panel_.curves.size()) {
      const Point end{at.x + kLegendSample, at.y};
      canvas_.line(std::array<Point, 2>{at, end}, curve_stroke(index, colors_));
      if (panel_.curves[index].has_markers) marker({at.x + kLegendSample / 2, at.y}, index);
      return;
    }
    index -= panel_.curves.size();
    if (index < panel_.bars.size()) {
      canvas_.fill(box, series_color(index, colors_));
      return;
    }
    const Swatch& swatch = panel_.swatches[index - panel_.bars.size()];
    if (swatch.color) {
      canvas_.fill(box, *swatch.color);
    } else {
      canvas_.hatch({&box, 1});
    }
    canvas_.outline(box, {colors_.muted, 0.5});
  }

  void color_bar(const ColorBar& bar) {
    const Box box{plot().right() + plan_.end_names_width + 2 * kGap, plot().y, kColorBarWidth,
                  plot().height};
    canvas_.gradient(box, bar.colors);
    canvas_.outline(box, {colors_.grid, 1});
    const double spacing = bar.axis.ticks.empty()
                               ? box.height
                               : box.height / static_cast<double>(bar.axis.ticks.size());
    const auto step = static_cast<std::size_t>(std::max(1.0, std::ceil(14 / spacing)));
    for (std::size_t i = 0; i < bar.axis.ticks.size(); i += step) {
      const Tick& tick = bar.axis.ticks[i];
      const double y = box.bottom() - place(bar.axis, tick.at) * box.height;
      canvas_.line(std::array<Point, 2>{{{box.right(), y}, {box.right() + 3, y}}},
                   {colors_.muted, 1});
      canvas_.text(tick.label, {box.right() + kGap, y}, style(kTickSize, colors_.muted), {0, 0.5});
    }
    canvas_.text(bar.axis.label, {box.right() + 2 * kGap + plan_.color_bar_ticks, box.center().y},
                 style(kAxisTitleSize, colors_.ink), {0.5, 0, 90});
  }

  const Panel& panel_;
  const PanelPlan& plan_;
  const Fonts& fonts_;
  Canvas& canvas_;
  const Palette& colors_;
};

}  // namespace

void paint(const Figure& figure, const FigurePlan& plan, const Fonts& fonts, Canvas& canvas) {
  const Palette& colors = palette(figure.theme);
  canvas.fill({0, 0, plan.size.width, plan.size.height}, colors.background);
  const auto text = [&](const std::string& words, const Box& box, TextStyle style) {
    if (words.empty()) return;
    style.max_width = box.width;
    style.wraps = true;
    canvas.text(words, {box.x, box.y}, style, {0, 0});
  };
  text(figure.title, plan.title, {.size = kTitleSize, .color = colors.ink, .is_bold = true});
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    PanelPainter(figure.panels[i], plan.panels[i], fonts, canvas, colors).paint();
  }
  text(figure.note, plan.note, {.size = kNoteSize, .color = colors.muted});
}

}}}  // namespace heed::v0::figure
