// The layout of a figure, and its painting. Plots are at whole units, so that matrix cells align
// with pixels.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "heed/viz/figure.h"
#include "viz/figure/canvas.h"
#include "viz/figure/text.h"

namespace heed { inline namespace v0 { namespace figure {

inline constexpr double kTitleSize = 16;
inline constexpr double kPanelTitleSize = 13;
inline constexpr double kAxisTitleSize = 12;
inline constexpr double kTickSize = 11;
inline constexpr double kNoteSize = 11;
inline constexpr double kLegendSize = 11;
inline constexpr double kGap = 6;             // between a plot and the elements next to it
inline constexpr double kLegendRow = 18;      // the height of a row of the legend
inline constexpr double kLegendSample = 22;   // the width of a sample of colour or line
inline constexpr double kColorBarWidth = 12;  // the strip of colours
inline constexpr double kMaxTickLabel = 130;

// The axis labels that are drawn: every `step`th, rotated if `angle` is not 0.
struct TickPlan {
  std::size_t step = 1;
  double angle = 0;
  double depth = 0;  // their extent from the plot
};

struct LegendEntry {
  std::string name;
  std::size_t index = 0;  // of the curve, the bars or the swatch
  Point at;               // the left end of its sample, from the legend's corner
};

// The name of a curve, at its end.
struct EndName {
  std::string name;
  double y = 0;  // of its centre, from the top of the plot
};

struct PanelPlan {
  Box plot;
  TickPlan x;
  TickPlan y;
  double color_bar_ticks = 0;  // the width of its labels
  std::vector<LegendEntry> legend;
  std::vector<EndName> end_names;  // from the top down
  double end_names_width = 0;      // including the gap before them
  double legend_height = 0;        // between title and plot: the maximum over the panels of the row
};

struct FigurePlan {
  Size size;
  Box title;
  Box note;
  std::vector<PanelPlan> panels;
};

// The style of a curve's name at its end.
inline TextStyle end_name_style() { return {.size = kLegendSize, .max_width = kMaxTickLabel}; }

// The style of a panel's title, which may take several lines.
TextStyle panel_title_style(const Panel& panel);

FigurePlan plan_figure(const Figure& figure, const Fonts& fonts);

void paint(const Figure& figure, const FigurePlan& plan, const Fonts& fonts, Canvas& canvas);

}}}  // namespace heed::v0::figure
