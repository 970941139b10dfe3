#include "viz/figure/layout.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "viz/figure/scales.h"

namespace heed { inline namespace v0 { namespace figure {
namespace {

constexpr double kPadding = 16;
constexpr double kBetweenPanels = 22;
constexpr double kMinWidth = 340;
constexpr double kMaxTitle = 600;  // a longer title takes several lines
constexpr double kTurned = 45;     // degrees
constexpr double kLineHeight = 14;

// The space that a panel needs on each side of its plot, without its legend.
struct Margins {
  double left = 0;
  double right = 0;
  double top = 0;
  double bottom = 0;
};

double widest(const Axis& axis, const Fonts& fonts) {
  double width = 0;
  for (const Tick& tick : axis.ticks) {
    width = std::max(width,
                     fonts.size(tick.label, {.size = kTickSize, .max_width = kMaxTickLabel}).width);
  }
  return width;
}

// The distance between adjacent ticks in units.
double spacing(const Axis& axis, double length) {
  return axis.ticks.size() < 2 ? length : length / static_cast<double>(axis.ticks.size());
}

std::size_t step_for(double wanted, double spacing) {
  return std::max<std::size_t>(1, static_cast<std::size_t>(std::ceil(wanted / spacing - 1e-9)));
}

TickPlan plan_x_ticks(const Axis& axis, double length, const Fonts& fonts) {
  if (axis.ticks.empty()) return {};
  const double width = widest(axis, fonts);
  const double each = spacing(axis, length);
  if (width + 4 <= each) return {.depth = kLineHeight};
  if (axis.skips_labels) return {.step = step_for(width + kGap, each), .depth = kLineHeight};
  const double sine = std::sin(kTurned * std::numbers::pi / 180);
  return {
      .step = step_for(kLineHeight, each), .angle = kTurned, .depth = (width + kLineHeight) * sine};
}

TickPlan plan_y_ticks(const Axis& axis, double length, const Fonts& fonts) {
  if (axis.ticks.empty()) return {};
  return {.step = step_for(kLineHeight, spacing(axis, length)), .depth = widest(axis, fonts)};
}

// Places the names of curves, bars and swatches in rows of at most `width`.
void plan_legend(const Panel& panel, double width, const Fonts& fonts, PanelPlan& plan) {
  std::vector<std::string> names;
  for (const Curve& curve : panel.curves) {
    names.push_back(panel.has_names_at_ends ? "" : curve.name);
  }
  for (const Bars& bars : panel.bars) names.push_back(bars.name);
  for (const Swatch& swatch : panel.swatches) names.push_back(swatch.name);
  Point at;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const double label = fonts.size(names[i], {.size = kLegendSize, .max_width = width}).width;
    const double needed = kLegendSample + kGap + label;
    if (at.x > 0 && at.x + needed > width) at = {0, at.y + kLegendRow};
    plan.legend.push_back({names[i], i, at});
    at.x += needed + 2 * kGap;
  }
  plan.legend_height = plan.legend.empty() ? 0 : at.y + kLegendRow + 2;
}

// The distance of a curve's end from the top of the plot; nothing if no point of it can be drawn.
std::optional<double> end_of(const Curve& curve, const Panel& panel) {
  for (std::size_t i = curve.x.size(); i-- > 0;) {
    const double height = place(panel.y, curve.y[i]);
    if (!std::isfinite(height) || !std::isfinite(place(panel.x, curve.x[i]))) continue;
    return (1 - std::clamp(height, 0.0, 1.0)) * panel.height;
  }
  return std::nullopt;
}

// Places names at the ends of curves, moved apart where they would overlap, and within the plot if
// they fit.
void plan_end_names(const Panel& panel, PanelPlan& plan) {
  auto& names = plan.end_names;
  for (const Curve& curve : panel.curves) {
    const auto y = end_of(curve, panel);
    if (y && !curve.name.empty()) names.push_back({curve.name, *y});
  }
  std::stable_sort(names.begin(), names.end(),
                   [](const EndName& a, const EndName& b) { return a.y < b.y; });
  for (std::size_t i = 1; i < names.size(); ++i) {
    names[i].y = std::max(names[i].y, names[i - 1].y + kLineHeight);
  }
  double lowest = panel.height;
  for (std::size_t i = names.size(); i-- > 0; lowest = names[i].y - kLineHeight) {
    names[i].y = std::min(names[i].y, lowest);
  }
}

Margins margins_of(const Panel& panel, const Fonts& fonts, PanelPlan& plan) {
  plan.x = plan_x_ticks(panel.x, panel.width, fonts);
  plan.y = plan_y_ticks(panel.y, panel.height, fonts);
  plan_legend(panel, std::max(panel.width, 150), fonts, plan);
  if (panel.has_names_at_ends) plan_end_names(panel, plan);
  Margins margins;
  margins.left = plan.y.depth + (plan.y.depth > 0 ? kGap : 0) +
                 (panel.y.label.empty() ? 0 : kLineHeight + kGap);
  // A rotated label extends to the left of its tick.
  if (plan.x.angle != 0) {
    const double first = spacing(panel.x, panel.width) / 2;
    margins.left = std::max(margins.left, plan.x.depth - first);
  }
  margins.bottom = plan.x.depth + (plan.x.depth > 0 ? kGap : 0) +
                   (panel.x.label.empty() ? 0 : kLineHeight + kGap);
  const TextStyle title = panel_title_style(panel);
  const Size title_size = panel.title.empty() ? Size{} : fonts.size(panel.title, title);
  const double first_line = fonts.size("x", title).height;
  margins.top = panel.title.empty() ? 0 : kPanelTitleSize + 10 + title_size.height - first_line;
  // A title may be wider than a narrow plot, on both sides.
  const double overhang = (title_size.width - panel.width) / 2;
  margins.left = std::max(margins.left, overhang);
  for (const EndName& name : plan.end_names) {
    plan.end_names_width =
        std::max(plan.end_names_width, kGap + fonts.size(name.name, end_name_style()).width);
  }
  margins.right = std::max({kGap, overhang, plan.end_names_width});
  if (panel.color_bar) {
    plan.color_bar_ticks = widest(panel.color_bar->axis, fonts);
    const double bar = plan.end_names_width + 2 * kGap + kColorBarWidth + kGap +
                       plan.color_bar_ticks +
                       (panel.color_bar->axis.label.empty() ? 0 : kLineHeight + kGap);
    margins.right = std::max(margins.right, bar);
  } else if (plan.x.angle == 0 && !panel.x.ticks.empty()) {
    margins.right = std::max(margins.right, widest(panel.x, fonts) / 2);
  }
  return margins;
}

// The sizes of a row or column of panels: its margins and its largest plot.
struct Track {
  double before = 0;
  double plot = 0;
  double after = 0;
  double start = 0;

  void include(double margin_before, double extent, double margin_after) {
    before = std::max(before, std::ceil(margin_before));
    plot = std::max(plot, extent);
    after = std::max(after, std::ceil(margin_after));
  }
  double size() const { return before + plot + after; }
};

double place_tracks(std::vector<Track>& tracks) {
  double at = 0;
  for (Track& track : tracks) {
    track.start = at;
    at += track.size() + kBetweenPanels;
  }
  return tracks.empty() ? 0 : at - kBetweenPanels;
}

// The height of the text at a given width, plus a gap; 0 for an empty text.
double height_of(const std::string& text, double size, double width, const Fonts& fonts) {
  if (text.empty()) return 0;
  return std::ceil(fonts
                       .size(text, {.size = size,
                                    .is_bold = size == kTitleSize,
                                    .max_width = width,
                                    .wraps = true})
                       .height) +
         10;
}

}  // namespace

TextStyle panel_title_style(const Panel& panel) {
  return {.size = kPanelTitleSize,
          .max_width = std::max(panel.width + 40.0, 150.0),
          .wraps = true,
          .is_centered = true};
}

FigurePlan plan_figure(const Figure& figure, const Fonts& fonts) {
  FigurePlan plan;
  const auto columns = static_cast<std::size_t>(figure.columns);
  std::vector<Track> across(std::min(columns, figure.panels.size()));
  std::vector<Track> down((figure.panels.size() + columns - 1) / columns);
  std::vector<double> legends(down.size());
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Panel& panel = figure.panels[i];
    const Margins margins = margins_of(panel, fonts, plan.panels.emplace_back());
    across[i % columns].include(margins.left, panel.width, margins.right);
    down[i / columns].include(margins.top, panel.height, margins.bottom);
    legends[i / columns] = std::max(legends[i / columns], plan.panels[i].legend_height);
  }
  // All panels of a row reserve the same height for legends, so that their titles align.
  for (std::size_t row = 0; row < down.size(); ++row) down[row].before += legends[row];
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    plan.panels[i].legend_height = legends[i / columns];
  }
  const double grid_width = place_tracks(across);
  const double grid_height = place_tracks(down);
  const double wanted = fonts.size(figure.title, {.size = kTitleSize, .is_bold = true}).width;
  const double width = std::max(grid_width, std::clamp(std::ceil(wanted), kMinWidth, kMaxTitle));
  const double title = height_of(figure.title, kTitleSize, width, fonts);
  const double note = height_of(figure.note, kNoteSize, width, fonts);
  const double left = kPadding + std::floor((width - grid_width) / 2);
  const double top = kPadding + title;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const Track& column = across[i % columns];
    const Track& row = down[i / columns];
    plan.panels[i].plot = {left + column.start + column.before, top + row.start + row.before,
                           static_cast<double>(figure.panels[i].width),
                           static_cast<double>(figure.panels[i].height)};
  }
  plan.title = {kPadding, kPadding, width, title};
  plan.note = {kPadding, top + grid_height + 10, width, note};
  plan.size = {width + 2 * kPadding, top + grid_height + note + kPadding};
  return plan;
}

}}}  // namespace heed::v0::figure
