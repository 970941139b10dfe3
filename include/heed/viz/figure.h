/// Figures of numbers for papers, pages and screens, as PNG, SVG or PDF.
///
/// A Figure is a plain value with everything to be drawn: panels on a grid, each with two axes and
/// cells, curves or bars between them. heed/viz/attention_figure.h and heed/viz/chart.h make
/// figures from weights, masks and measurements; docs/seeing.md shows how to read them.
///
/// Every text may hold any bytes. It is drawn literally, never as markup: control characters,
/// bidirectional overrides and invalid UTF-8 become visible escapes, and texts that are too long
/// are cut. The library must have been built with HEED_BUILD_FIGURES, as it is by default.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "heed/core/config.h"
#include "heed/viz/colormap.h"

namespace heed { inline namespace v0 {

/// The background of a figure.
enum class Theme { kLight, kDark };

/// A labelled position on an axis.
struct Tick {
  double at = 0;
  std::string label = {};
};

/// An axis of a panel. `low` is at the left or the bottom, `high` at the right or the top; `high`
/// may be the smaller one. On a logarithmic axis both are positive.
struct Axis {
  std::string label = {};
  double low = 0;
  double high = 1;
  bool is_log = false;
  std::vector<Tick> ticks = {};
  /// When labels do not fit: true leaves some out, as is usual for numbers; false turns them, and
  /// leaves some out if they still do not fit.
  bool skips_labels = true;
};

/// A matrix of coloured cells that fills a panel; row 0 is at the top.
struct Cells {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<Rgb> colors = {};         ///< one per cell, row-major
  std::vector<bool> is_hatched = {};    ///< one per cell: hatched instead of coloured; or empty
  std::vector<std::string> texts = {};  ///< one per cell, drawn if all of them fit; or empty
};

/// Points joined by lines. A coordinate that is not finite breaks the line.
struct Curve {
  std::string name = {};  ///< in the legend or at the end; empty: not shown
  std::vector<double> x = {};
  std::vector<double> y = {};
  bool has_markers = false;
};

/// Bars from 0: that of category i is at x = i + 1/2.
struct Bars {
  std::string name = {};
  std::vector<double> heights = {};
};

/// The legend of the cells' colours: `colors` from axis.low to axis.high, evenly spaced.
struct ColorBar {
  std::vector<Rgb> colors = {};
  Axis axis = {};
};

/// The legend of one colour of the cells; without a colour, of the hatching.
struct Swatch {
  std::string name = {};
  std::optional<Rgb> color = {};
};

/// One plot. Sizes are in units of 1/96 inch, of the area between the axes.
struct Panel {
  std::string title = {};
  int width = 0;
  int height = 0;
  Axis x = {};
  Axis y = {};
  bool has_grid = false;
  Cells cells = {};
  std::vector<Curve> curves = {};
  /// If true, names of curves are right of the plot, at the heights of the curves' ends or as near
  /// as there is space, instead of in the legend.
  bool has_names_at_ends = false;
  std::vector<Bars> bars = {};
  std::optional<ColorBar> color_bar = {};
  std::vector<Swatch> swatches = {};
};

/// A figure: panels on a grid.
struct Figure {
  std::string title = {};
  std::string note = {};  ///< below the panels: remarks for the reader
  std::vector<Panel> panels = {};
  std::int64_t columns = 1;  ///< panels per row
  Theme theme = Theme::kLight;
};

/// The file formats of figures.
enum class FigureFormat { kPng, kSvg, kPdf };

/// The format of a path's extension: .png, .svg or .pdf, in any case.
/// @throws InvalidArgument for any other.
HEED_API FigureFormat figure_format(const std::filesystem::path& path);

/// Checks that there is a font, for programs that compute for a long time before they draw.
/// @throws std::runtime_error where fontconfig finds none, as the functions below do.
HEED_API void check_fonts();

/// The file's bytes: the same for the same figure with the same fonts and versions of cairo and
/// pango. PNG has two pixels per unit. In SVG, text is drawn as outlines, so that viewers need no
/// font, and the title is also stored as text for screen readers.
/// @throws InvalidArgument when a part does not fit its panel or the picture would be too large;
/// std::runtime_error when the drawing library fails or the machine has no font.
HEED_API std::string render_figure(const Figure& figure, FigureFormat format);

/// One self-contained HTML file: the figure as SVG, and its numbers, as far as the figure has them,
/// as tables for readers who cannot see it. On a narrow screen the panels are below each other. A
/// Content-Security-Policy prevents the page from loading or running anything.
HEED_API std::string figure_page(const Figure& figure);

/// figure_page() of a figure in a light and in a dark theme: the page shows the one of the reader's
/// screen. @throws as render_figure.
HEED_API std::string figure_page(const Figure& light, const Figure& dark);

/// Writes the figure in the format of the path's extension; the file is replaced as a whole.
/// @throws InvalidArgument as above, before anything is written; IoError when the operating system
/// refuses.
HEED_API void write_figure(const std::filesystem::path& path, const Figure& figure);

}}  // namespace heed::v0
