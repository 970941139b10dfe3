#include "viz/figure/page_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "viz/explorer/base64.h"
#include "viz/figure/layout.h"
#include "viz/figure/svg.h"
#include "viz/figure/text.h"

namespace heed { inline namespace v0 { namespace figure {
namespace {

constexpr std::size_t kMostStacked = 12;
constexpr double kNarrowScreen = 372;  // the available width on a screen of 390 pixels
constexpr double kNarrowestPlot = 140;

constexpr std::string_view kNarrow = "(max-width: 600px)";
constexpr std::string_view kDark = "(prefers-color-scheme: dark)";

// Reduces the plot of a panel to at most `width`; cells keep their shape.
void narrow(Panel& panel, double width) {
  if (width >= panel.width) return;
  double narrow = std::max(width, kNarrowestPlot);
  const auto columns = static_cast<double>(panel.cells.columns);
  if (columns > 0 && columns <= narrow) narrow = std::floor(narrow / columns) * columns;
  const double factor = narrow / panel.width;
  panel.width = static_cast<int>(narrow);
  if (columns > 0) panel.height = std::max(1, static_cast<int>(std::lround(panel.height * factor)));
}

std::string without_texts(Figure figure) {
  figure.title.clear();
  figure.note.clear();
  std::string svg = render_figure(figure, FigureFormat::kSvg);
  svg.erase(0, svg.find("<svg "));
  return "data:image/svg+xml;base64," +
         explorer::base64(std::as_bytes(std::span(svg.data(), svg.size())));
}

std::string source(const std::string& media, const Figure& figure) {
  return fmt::format("<source media=\"{}\" srcset=\"{}\">\n", media, without_texts(figure));
}

}  // namespace

Figure narrowed(const Figure& figure) {
  if (figure.panels.size() > kMostStacked) return figure;
  Figure result = figure;
  result.columns = 1;
  const Fonts fonts;
  for (Panel& panel : result.panels) {
    const Figure alone{.panels = {panel}, .theme = figure.theme};
    const double beside = plan_figure(alone, fonts).size.width - panel.width;
    narrow(panel, kNarrowScreen - beside);
  }
  return result;
}

std::string picture_element(const Figure& figure, const Figure* dark) {
  std::string element = "<picture>\n";
  const bool has_narrow = figure.panels.size() <= kMostStacked;
  if (dark != nullptr) {
    if (has_narrow) element += source(fmt::format("{} and {}", kDark, kNarrow), narrowed(*dark));
    element += source(std::string(kDark), *dark);
  }
  if (has_narrow) element += source(std::string(kNarrow), narrowed(figure));
  const std::string title = figure.title.empty() ? "Figure" : drawable(figure.title);
  return element + fmt::format("<img{} alt=\"{}\" src=\"{}\">\n</picture>\n",
                               has_narrow ? "" : " class=\"whole\"", escaped(title),
                               without_texts(figure));
}

}}}  // namespace heed::v0::figure
