// Where everything of a figure stands. Plots stand at whole units, so that no cell of a matrix
// falls between pixels.
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
inline constexpr double kGap = 6;             // between a plot and what is beside it
inline constexpr double kLegendRow = 18;      // the height of a row of the legend
inline constexpr double kLegendSample = 22;   // the width of a sample of colour or line
inline constexpr double kColorBarWidth = 12;  // the strip of colours
inline constexpr double kMaxTickLabel = 130;

// The labels of an axis that are drawn: every `step`th, turned when `angle` is not 0.
struct TickPlan {
  std::size_t step = 1;
  double angle = 0;
  double depth = 0;  // how far they reach from the plot
};

struct LegendEntry {
  std::string name;
  std::size_t index = 0;  // of the curve, the bars or the swatch
  Point at;               // the left end of its sample, from the legend's corner
};

// The name of a curve beside its end.
struct EndName {
  std::string name;
  double y = 0;  // of its middle, from the top of the plot
};

struct PanelPlan {
  Box plot;
  TickPlan x;
  TickPlan y;
  double color_bar_ticks = 0;  // the width of its labels
  std::vector<LegendEntry> legend;
  std::vector<EndName> end_names;  // from the top down
  double end_names_width = 0;      // with the gap before them
  double legend_height = 0;        // between title and plot: as much as any panel of the row needs
};

struct FigurePlan {
  Size size;
  Box title;
  Box note;
  std::vector<PanelPlan> panels;
};

// How the name of a curve is laid out at its end.
inline TextStyle end_name_style() { return {.size = kLegendSize, .max_width = kMaxTickLabel}; }

// How the title of a panel is laid out: on as many lines as it needs.
TextStyle panel_title_style(const Panel& panel);

FigurePlan plan_figure(const Figure& figure, const Fonts& fonts);

}}}  // namespace heed::v0::figure
