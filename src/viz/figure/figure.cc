#include "heed/viz/figure.h"

#include <cairo-pdf.h>
#include <cairo-svg.h>
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <stdexcept>

#include "heed/core/error.h"
#include "io/atomic_file.h"
#include "viz/figure/canvas.h"
#include "viz/figure/layout.h"
#include "viz/figure/svg.h"

namespace heed { inline namespace v0 {
namespace {

using figure::Canvas;
using figure::FigurePlan;
using figure::Fonts;

constexpr double kPixelsPerUnit = 2;
constexpr double kPointsPerUnit = 0.75;
constexpr double kMaxExtent = 12'000;
constexpr double kMaxArea = 16e6;  // 256 MB of pixels

struct DestroySurface {
  void operator()(cairo_surface_t* surface) const noexcept { cairo_surface_destroy(surface); }
};
using Surface = std::unique_ptr<cairo_surface_t, DestroySurface>;

[[noreturn]] void refuse(std::size_t panel, std::string_view problem) {
  throw InvalidArgument(fmt::format("render_figure: panel {} {}", panel, problem));
}

void check_axis(std::size_t index, const char* name, const Axis& axis) {
  const bool is_finite = std::isfinite(axis.low) && std::isfinite(axis.high);
  if (is_finite && axis.low != axis.high && (!axis.is_log || (axis.low > 0 && axis.high > 0))) {
    return;
  }
  refuse(index, fmt::format("has {} from {} to {}, expected two different {} numbers", name,
                            axis.low, axis.high, axis.is_log ? "positive" : "finite"));
}

void check_cells(std::size_t index, const Cells& cells) {
  const auto count = static_cast<std::size_t>(cells.rows * cells.columns);
  const bool fits = cells.rows >= 0 && cells.columns >= 0 && cells.colors.size() == count &&
                    (cells.is_hatched.empty() || cells.is_hatched.size() == count) &&
                    (cells.texts.empty() || cells.texts.size() == count);
  if (fits) return;
  refuse(index, fmt::format("has {} colours, {} hatched and {} texts for {} × {} cells",
                            cells.colors.size(), cells.is_hatched.size(), cells.texts.size(),
                            cells.rows, cells.columns));
}

void check(const Panel& panel, std::size_t index) {
  if (panel.width < 1 || panel.height < 1 || panel.width > kMaxExtent ||
      panel.height > kMaxExtent) {
    refuse(index, fmt::format("is {} × {} units, expected 1 to {}", panel.width, panel.height,
                              kMaxExtent));
  }
  check_axis(index, "an x axis", panel.x);
  check_axis(index, "a y axis", panel.y);
  check_cells(index, panel.cells);
  for (const Curve& curve : panel.curves) {
    if (curve.x.size() == curve.y.size()) continue;
    refuse(index, fmt::format("has a curve of {} x and {} y", curve.x.size(), curve.y.size()));
  }
  if (!panel.color_bar) return;
  check_axis(index, "a colour bar", panel.color_bar->axis);
  if (panel.color_bar->colors.size() < 2) refuse(index, "has a colour bar of fewer than 2 colours");
}

FigurePlan checked_plan(const Figure& figure, const Fonts& fonts) {
  if (figure.columns < 1) {
    throw InvalidArgument(
        fmt::format("render_figure: columns is {}, expected at least 1", figure.columns));
  }
  for (std::size_t i = 0; i < figure.panels.size(); ++i) check(figure.panels[i], i);
  FigurePlan plan = plan_figure(figure, fonts);
  if (plan.size.width > kMaxExtent || plan.size.height > kMaxExtent ||
      plan.size.width * plan.size.height > kMaxArea) {
    throw InvalidArgument(
        fmt::format("render_figure: {} panels take {:.0f} × {:.0f} units, expected at most {} each "
                    "way and {:.0e} together: draw fewer of them",
                    figure.panels.size(), plan.size.width, plan.size.height, kMaxExtent, kMaxArea));
  }
  return plan;
}

cairo_status_t append(void* bytes, const unsigned char* data, unsigned int size) {
  try {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), size);
    return CAIRO_STATUS_SUCCESS;
  } catch (...) {
    return CAIRO_STATUS_NO_MEMORY;
  }
}

void check(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return;
  throw std::runtime_error(fmt::format("render_figure: cairo: {}", cairo_status_to_string(status)));
}

Surface make_surface(FigureFormat format, const FigurePlan& plan, const std::string& title,
                     std::string& bytes) {
  const auto [width, height] = plan.size;
  switch (format) {
    case FigureFormat::kPng: {
      const auto pixels = [](double units) { return static_cast<int>(units * kPixelsPerUnit); };
      Surface surface(
          cairo_image_surface_create(CAIRO_FORMAT_RGB24, pixels(width), pixels(height)));
      cairo_surface_set_device_scale(surface.get(), kPixelsPerUnit, kPixelsPerUnit);
      return surface;
    }
    case FigureFormat::kSvg: {
      Surface surface(cairo_svg_surface_create_for_stream(append, &bytes, width, height));
      cairo_svg_surface_set_document_unit(surface.get(), CAIRO_SVG_UNIT_PX);
      return surface;
    }
    case FigureFormat::kPdf:
      break;
  }
  Surface surface(cairo_pdf_surface_create_for_stream(append, &bytes, width * kPointsPerUnit,
                                                      height * kPointsPerUnit));
  cairo_surface_set_device_scale(surface.get(), kPointsPerUnit, kPointsPerUnit);
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_TITLE, title.c_str());
  // Otherwise cairo writes the current time.
  cairo_pdf_surface_set_metadata(surface.get(), CAIRO_PDF_METADATA_CREATE_DATE,
                                 "2000-01-01T00:00:00Z");
  return surface;
}

}  // namespace

FigureFormat figure_format(const std::filesystem::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (ending == ".png") return FigureFormat::kPng;
  if (ending == ".svg") return FigureFormat::kSvg;
  if (ending == ".pdf") return FigureFormat::kPdf;
  throw InvalidArgument(
      fmt::format("figure_format: '{}' does not end in .png, .svg or .pdf", path.string()));
}

void check_fonts() { const Fonts fonts; }

std::string render_figure(const Figure& figure, FigureFormat format) {
  const Fonts fonts;
  const FigurePlan plan = checked_plan(figure, fonts);
  const std::string title = figure::drawable(figure.title);
  std::string bytes;
  const Surface surface = make_surface(format, plan, title, bytes);
  check(cairo_surface_status(surface.get()));
  {
    Canvas canvas(surface.get(), fonts, figure.theme);
    figure::paint(figure, plan, fonts, canvas);
    check(canvas.status());
  }
  if (format == FigureFormat::kPng) {
    check(cairo_surface_write_to_png_stream(surface.get(), append, &bytes));
    return bytes;
  }
  cairo_surface_finish(surface.get());
  check(cairo_surface_status(surface.get()));
  if (format == FigureFormat::kPdf) return bytes;
  const std::string svg = figure::compacted(figure::with_stable_names(bytes));
  return figure::with_title(figure::without_styles(svg), title);
}

void write_figure(const std::filesystem::path& path, const Figure& figure) {
  const std::string bytes = render_figure(figure, figure_format(path));
  io::write_file_atomically(path, [&bytes](const io::ByteSink& sink) {
    sink(std::as_bytes(std::span(bytes.data(), bytes.size())));
  });
}

}}  // namespace heed::v0
