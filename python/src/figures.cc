// Pictures of weights and masks.
#include <fmt/format.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings.h"
#include "heed/viz/attention_figure.h"
#include "operands.h"
#include "readers.h"

namespace heed::python {

namespace {

#ifndef HEED_WITHOUT_FIGURES

constexpr const char* kFigure = "figure";

using Names = std::vector<std::string>;

template <class Value, std::size_t kCount>
Value choice(const char* name, const std::string& given,
             const std::array<std::pair<std::string_view, Value>, kCount>& choices) {
  std::string expected;
  for (const auto& [text, value] : choices) {
    if (given == text) return value;
    expected += fmt::format("{}'{}'", expected.empty() ? "" : ", ", text);
  }
  throw InvalidArgument(
      fmt::format("{}: {} is '{}', expected one of {}", kFigure, name, given, expected));
}

ColorScale scale_of(const std::string& name) {
  return choice<ColorScale, 3>("scale", name,
                               {{{"linear", ColorScale::kLinear},
                                 {"log", ColorScale::kLog},
                                 {"per-row", ColorScale::kPerRow}}});
}

ColorMap map_of(const std::string& name) {
  return choice<ColorMap, 5>("color_map", name,
                             {{{"viridis", ColorMap::kViridis},
                               {"blues", ColorMap::kBlues},
                               {"ylorrd", ColorMap::kYlOrRd},
                               {"greys", ColorMap::kGreys},
                               {"rdbu", ColorMap::kRdBu}}});
}

// The title and style of a figure.
struct Style {
  std::string title, note, scale, color_map;
  bool hides_first, is_dark;
};

Theme theme_of(const Style& style) { return style.is_dark ? Theme::kDark : Theme::kLight; }

// Draws [queries, keys], [num_heads, queries, keys], or [layers, num_heads, queries, keys] with a
// row of pictures for each layer.
Figure weights_figure(nb::handle weights, const Names& queries, const Names& keys,
                      const Names& panels, const Style& style) {
  const Array array = to_array(kFigure, "weights", weights);
  std::optional<Tensor<float>> copy;
  const FloatView view = as_real(kFigure, "weights", array, copy);
  const AttentionFigureOptions options{.title = style.title,
                                       .note = style.note,
                                       .queries = queries,
                                       .keys = keys,
                                       .panels = panels,
                                       .color_map = map_of(style.color_map),
                                       .scale = scale_of(style.scale),
                                       .hides_first_key = style.hides_first,
                                       .theme = theme_of(style)};
  return view.rank() == 4 ? overview_figure(view, options) : attention_figure(view, options);
}

// Draws booleans [queries, keys] or [masks, queries, keys], where true is visible.
Figure visible_figure(nb::handle visible, const Names& queries, const Names& keys,
                      const Names& panels, const Style& style) {
  const Array array = to_array(kFigure, "visible", visible);
  if (array.dtype() != nb::dtype<bool>()) {
    throw InvalidArgument(
        fmt::format("{}: visible is {}, expected bool", kFigure, type_name(array)));
  }
  return mask_figure(view_of<bool>(array), {.title = style.title,
                                            .note = style.note,
                                            .queries = queries,
                                            .keys = keys,
                                            .panels = panels,
                                            .theme = theme_of(style)});
}

nb::bytes rendered(const Figure& figure, const std::string& format) {
  const auto of = choice<FigureFormat, 3>(
      "format", format,
      {{{"svg", FigureFormat::kSvg}, {"png", FigureFormat::kPng}, {"pdf", FigureFormat::kPdf}}});
  const std::string bytes = without_lock([&] { return render_figure(figure, of); });
  return nb::bytes(bytes.data(), bytes.size());
}

#endif

}  // namespace

void bind_figures(nb::module_& module) {
#ifdef HEED_WITHOUT_FIGURES
  // Builds without figures have these names, too.
  nb::class_<Figure>(module, "Figure", "A picture.");
  for (const char* name : {"weights_figure", "visible_figure"}) {
    module.def(name, [](nb::args) {
      throw std::runtime_error(
          "figure: this package was built without cairo and pango, which draw figures; build it "
          "with pip install . -C cmake.define.HEED_BUILD_FIGURES=ON, or use heed.show()");
    });
  }
#else
  nb::class_<Figure>(module, "Figure",
                     "A picture. A notebook shows it by itself; save() chooses the format by the "
                     "path's ending: .svg, .png or .pdf.")
      .def("render", &rendered, nb::arg("format"),
           "The bytes of a file: format is \"svg\", \"png\" or \"pdf\".")
      .def("_repr_svg_",
           [](const Figure& self) {
             return without_lock([&] { return render_figure(self, FigureFormat::kSvg); });
           })
      .def(
          "page",
          [](const Figure& self) { return without_lock([&] { return figure_page(self); }); },
          "One HTML file: the picture, and its numbers as tables.")
      .def(
          "save",
          [](const Figure& self, const std::filesystem::path& path) {
            without_lock([&] {
              write_figure(path, self);
              return 0;
            });
          },
          nb::arg("path"), "Writes the file, whole or not at all.");
  const auto style = [](const nb::tuple& given) {
    return Style{read_as<std::string>("figure", "title", given[0]),
                 read_as<std::string>("figure", "note", given[1]),
                 read_as<std::string>("figure", "scale", given[2]),
                 read_as<std::string>("figure", "color_map", given[3]),
                 read_as<bool>("figure", "hide_first", given[4]),
                 read_as<bool>("figure", "dark", given[5])};
  };
  module.def(
      "weights_figure",
      [style](nb::handle weights, const Names& queries, const Names& keys, const Names& panels,
              const nb::tuple& look) {
        return weights_figure(weights, queries, keys, panels, style(look));
      },
      nb::arg("weights").none(), nb::arg("queries"), nb::arg("keys"), nb::arg("panels"),
      nb::arg("style"));
  module.def(
      "visible_figure",
      [style](nb::handle visible, const Names& queries, const Names& keys, const Names& panels,
              const nb::tuple& look) {
        return visible_figure(visible, queries, keys, panels, style(look));
      },
      nb::arg("visible").none(), nb::arg("queries"), nb::arg("keys"), nb::arg("panels"),
      nb::arg("style"));
#endif
}

}  // namespace heed::python
