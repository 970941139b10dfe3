/// Figures: pictures of numbers for papers, pages and screens, as PNG, SVG or PDF.
///
/// A Figure is a plain value that holds all that will be drawn: panels on a grid, each with two
/// axes and cells, curves or bars between them. heed/viz/attention_figure.h and heed/viz/chart.h
/// make figures from weights, masks and measurements; docs/seeing.md shows how to read them.
///
/// Every text may hold any bytes. It is drawn as it stands, never read as markup: control
/// characters, bidirectional overrides and invalid UTF-8 become visible escapes, and what is too
/// long is cut. The library must have been built with HEED_BUILD_FIGURES, as it is by default.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/viz/colormap.h"

namespace heed { inline namespace v0 {

enum class Theme { kLight, kDark };

/// A named place on an axis.
struct Tick {
  double at = 0;
  std::string label = {};
};

/// A side of a panel. `low` is at the left or the bottom, `high` at the right or the top; it may be
/// the smaller one. On a logarithmic axis both are positive.
struct Axis {
  std::string label = {};
  double low = 0;
  double high = 1;
  bool is_log = false;
  std::vector<Tick> ticks = {};
  /// What to do when labels do not fit: leave some out, as one may with numbers (true), or turn
  /// them and leave out what does not fit even then (false).
  bool skips_labels = true;
};

/// A matrix of coloured cells that fills a panel; row 0 is at the top.
struct Cells {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<Rgb> colors = {};         ///< one per cell, row-major
  std::vector<bool> is_hatched = {};    ///< none, or one per cell: hatched instead of coloured
  std::vector<std::string> texts = {};  ///< none, or one per cell: drawn when all of them fit
};

/// Points joined by lines. A coordinate that is not finite breaks the line.
struct Curve {
  std::string name = {};  ///< in the legend or at the end; empty: nowhere
  std::vector<double> x = {};
  std::vector<double> y = {};
  bool has_markers = false;
};

/// Bars that stand on 0: the one of category i at x = i + 1/2.
struct Bars {
  std::string name = {};
  std::vector<double> heights = {};
};

/// What the colours of cells mean: `colors` from axis.low to axis.high, evenly.
struct ColorBar {
  std::vector<Rgb> colors = {};
  Axis axis = {};
};

/// What one colour of the cells means; no colour stands for the hatching.
struct Swatch {
  std::string name = {};
  std::optional<Rgb> color = {};
};

/// One plot. Sizes are in units of 1/96 inch and count the area between the axes.
struct Panel {
  std::string title = {};
  int width = 0;
  int height = 0;
  Axis x = {};
  Axis y = {};
  bool has_grid = false;
  Cells cells = {};
  std::vector<Curve> curves = {};
  /// Names of curves stand right of the plot, at the heights where the curves end or as near as
  /// they have room, instead of in the legend.
  bool has_names_at_ends = false;
  std::vector<Bars> bars = {};
  std::optional<ColorBar> color_bar = {};
  std::vector<Swatch> swatches = {};
};

struct Figure {
  std::string title = {};
  std::string note = {};  ///< below the panels: what a reader must know
  std::vector<Panel> panels = {};
  std::int64_t columns = 1;  ///< panels next to each other
  Theme theme = Theme::kLight;
};

enum class FigureFormat { kPng, kSvg, kPdf };

/// The format that a file's ending names: .png, .svg or .pdf, in any case.
/// @throws InvalidArgument for any other.
HEED_API FigureFormat figure_format(const std::filesystem::path& path);

/// Looks for a font to draw with, for programs that compute for long before they draw.
/// @throws std::runtime_error where fontconfig finds none, as the functions below do.
HEED_API void check_fonts();

/// The file's bytes: the same for the same figure with the same fonts and versions of cairo and
/// pango. PNG has two pixels per unit. In SVG, text is outlines: it needs no font of the viewer's,
/// and the title stands beside for a screen reader.
/// @throws InvalidArgument when a part does not fit its panel or the picture would be too large;
/// std::runtime_error when the drawing library fails or the machine has no font.
HEED_API std::string render_figure(const Figure& figure, FigureFormat format);

/// One HTML file that needs nothing else: the figure as SVG and its numbers, as far as the figure
/// holds them, as tables for those who cannot see it. On a narrow screen the panels stand one below
/// the other. A Content-Security-Policy keeps the page from loading or running anything.
/// @throws as render_figure.
HEED_API std::string figure_page(const Figure& figure);

/// The same of a figure that was drawn on a light and on a dark ground: the page has that of the
/// reader's screen.
HEED_API std::string figure_page(const Figure& light, const Figure& dark);

/// Writes the figure in the format that the path's ending names, whole or not at all.
/// @throws InvalidArgument as above, before anything is written; IoError when the operating system
/// refuses.
HEED_API void write_figure(const std::filesystem::path& path, const Figure& figure);

}}  // namespace heed::v0
