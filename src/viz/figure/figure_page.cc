// A figure as a page, with a table of its numbers for people who cannot see it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "heed/viz/figure.h"
#include "viz/explorer/page.h"
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

namespace heed { inline namespace v0 {

namespace {

constexpr std::size_t kMostRows = 2000;

using TableRow = std::vector<std::string>;

// The first row is the header of the columns, the first cell of each row the header of the row.
using TableRows = std::vector<TableRow>;

std::string harmless_text(std::string_view text) { return figure::escaped(figure::drawable(text)); }

std::string short_number(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "";
}

// The axis's label of cell `index`, or its number.
std::string name_of_cell(const Axis& axis, std::size_t index) {
  const double middle = static_cast<double>(index) + 0.5;
  const auto tick = std::find_if(axis.ticks.begin(), axis.ticks.end(),
                                 [middle](const Tick& each) { return each.at == middle; });
  return tick == axis.ticks.end() ? fmt::format("{}", index) : tick->label;
}

TableRows rows_of_cells(const Panel& panel) {
  const auto columns = static_cast<std::size_t>(panel.cells.columns);
  TableRows rows{{panel.y.label + " \\ " + panel.x.label}};
  for (std::size_t k = 0; k < columns; ++k) rows[0].push_back(name_of_cell(panel.x, k));
  for (std::size_t cell = 0; cell < panel.cells.texts.size(); ++cell) {
    if (cell % columns == 0) rows.push_back({name_of_cell(panel.y, cell / columns)});
    const bool is_hatched = !panel.cells.is_hatched.empty() && panel.cells.is_hatched[cell];
    const std::string& text = panel.cells.texts[cell];
    rows.back().push_back(is_hatched && text.empty() ? "masked" : text);
  }
  return rows;
}

TableRows rows_of_curves(const Panel& panel) {
  TableRows rows{{panel.x.label}};
  std::set<double> places;
  for (const Curve& curve : panel.curves) {
    rows[0].push_back(curve.name.empty() ? panel.y.label : curve.name);
    for (const double x : curve.x) {
      if (std::isfinite(x)) places.insert(x);
    }
  }
  for (const double place : places) {
    TableRow row{short_number(place)};
    for (const Curve& curve : panel.curves) {
      const auto found = std::find(curve.x.begin(), curve.x.end(), place);
      row.push_back(found == curve.x.end()
                        ? ""
                        : short_number(curve.y[static_cast<std::size_t>(found - curve.x.begin())]));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

TableRows rows_of_bars(const Panel& panel) {
  TableRows rows{{panel.x.label}};
  std::size_t count = 0;
  for (const Bars& bars : panel.bars) {
    rows[0].push_back(bars.name.empty() ? panel.y.label : bars.name);
    count = std::max(count, bars.heights.size());
  }
  for (std::size_t i = 0; i < count; ++i) {
    rows.push_back({name_of_cell(panel.x, i)});
    for (const Bars& bars : panel.bars) {
      rows.back().push_back(i < bars.heights.size() ? short_number(bars.heights[i]) : "");
    }
  }
  return rows;
}

std::string table_of_rows(const std::string& caption, const TableRows& rows) {
  std::string html = "<table><caption>" + harmless_text(caption) + "</caption>\n";
  for (std::size_t i = 0; i < std::min(rows.size(), kMostRows); ++i) {
    html += "<tr>";
    for (std::size_t k = 0; k < rows[i].size(); ++k) {
      const char* tag = i == 0 ? "th scope=\"col\"" : k == 0 ? "th scope=\"row\"" : "td";
      html += fmt::format("<{}>{}</{}>", tag, harmless_text(rows[i][k]),
                          i == 0 || k == 0 ? "th" : "td");
    }
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string table_of_panel(const Panel& panel, const std::string& caption) {
  if (!panel.cells.texts.empty()) return table_of_rows(caption, rows_of_cells(panel));
  if (!panel.curves.empty()) return table_of_rows(caption, rows_of_curves(panel));
  if (!panel.bars.empty()) return table_of_rows(caption, rows_of_bars(panel));
  return fmt::format("<p>{}: {} × {} colours, without numbers.</p>\n", harmless_text(caption),
                     panel.cells.rows, panel.cells.columns);
}

// The page of a figure, with a version for dark backgrounds if `dark` is given.
std::string page_of(const Figure& figure, const Figure* dark) {
  const std::string title = harmless_text(figure.title.empty() ? "Figure" : figure.title);
  std::string page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\" data-theme=\"{}\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'sha256-{}'; img-src data:; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n<body>\n",
      dark != nullptr                ? "auto"
      : figure.theme == Theme::kDark ? "dark"
                                     : "light",
      explorer::base64_of_hex(explorer::style_sha256()), title, explorer::style_source());
  page += "<div class=\"card picture\">\n";
  if (!figure.title.empty()) page += fmt::format("<h1>{}</h1>\n", title);
  page += figure::picture_element(figure, dark);
  if (!figure.note.empty()) page += fmt::format("<p>{}</p>\n", harmless_text(figure.note));
  page += "</div>\n<details class=\"card table-box\">\n<summary>The numbers as tables</summary>\n";
  for (const Panel& panel : figure.panels) {
    page += "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table\">" +
            table_of_panel(panel, panel.title.empty() ? figure.title : panel.title) + "</div>\n";
  }
  return page + "</details>\n</body>\n</html>\n";
}

}  // namespace

std::string figure_page(const Figure& figure) { return page_of(figure, nullptr); }

std::string figure_page(const Figure& light, const Figure& dark) { return page_of(light, &dark); }

}}  // namespace heed::v0
