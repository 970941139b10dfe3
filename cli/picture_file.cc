#include "picture_file.h"

#include <fmt/format.h>

#include <map>
#include <vector>

#include "arguments.h"
#include "io/unicode.h"
#include "verbs.h"

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

const std::map<std::string, ColorScale> kScales{
    {"linear", ColorScale::kLinear}, {"log", ColorScale::kLog}, {"per-row", ColorScale::kPerRow}};
const std::map<std::string, ColorMap> kMaps{{"viridis", ColorMap::kViridis},
                                            {"blues", ColorMap::kBlues},
                                            {"ylorrd", ColorMap::kYlOrRd},
                                            {"greys", ColorMap::kGreys}};

std::string ending_of(const fs::path& path) {
  std::string ending = path.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return ending;
}

bool is_figure(const std::string& ending) {
  return ending == ".png" || ending == ".svg" || ending == ".pdf";
}

bool has(const Picture& picture, const std::string& ending) {
  if (ending == ".json") return picture.json != nullptr;
  if (ending == ".html" && picture.page != nullptr) return true;
  return (is_figure(ending) || ending == ".html") && picture.figure != nullptr;
}

bool is_drawn(const Picture& picture, const std::string& ending) {
  return is_figure(ending) || (ending == ".html" && picture.page == nullptr);
}

std::string page_of(const Picture& picture) {
  if (picture.page) return picture.page();
  return picture.dark ? figure_page(picture.figure(), picture.dark())
                      : figure_page(picture.figure());
}

}  // namespace

void add_picture_options(CLI::App& verb, PictureArguments& arguments) {
  add_option(verb, "--color-scale", arguments.scale,
             "Colours of a picture: by weight, by its logarithm, or by its share of the row's "
             "largest")
      ->check(one_of(kScales))
      ->type_name("linear|log|per-row")
      ->capture_default_str();
  add_option(verb, "--map", arguments.map, "The colours of a picture")
      ->check(one_of(kMaps))
      ->type_name("viridis|blues|ylorrd|greys")
      ->capture_default_str();
  add_flag(verb, "--hide-first", arguments.hides_first,
           "Leave key 0 out of a picture: it often draws most of the attention");
  add_flag(verb, "--dark", arguments.is_dark, "Draw a picture on a dark ground");
}

AttentionFigureOptions figure_options(const PictureArguments& arguments) {
  return {.color_map = kMaps.at(arguments.map),
          .scale = kScales.at(arguments.scale),
          .hides_first_key = arguments.hides_first,
          .theme = arguments.theme()};
}

std::string headline(std::string_view text) {
  constexpr int kMostColumns = 72;
  const std::string legible = unicode::legible(text);
  const std::string_view start = unicode::prefix_of_columns(legible, kMostColumns);
  return std::string(start) + (start.size() < legible.size() ? "…" : "");
}

bool is_picture(const fs::path& path) {
  const std::string ending = ending_of(path);
  return is_figure(ending) || ending == ".json" || ending == ".html";
}

std::string picture_endings(const Picture& picture) {
  std::vector<std::string> endings;
  for (const char* ending : {".png", ".svg", ".pdf", ".json", ".html"}) {
    if (has(picture, ending)) endings.emplace_back(ending);
  }
  std::string text;
  for (std::size_t i = 0; i < endings.size(); ++i) {
    text += (i == 0 ? "" : i + 1 == endings.size() ? " or " : ", ") + endings[i];
  }
  return text;
}

void check_picture(const std::string& option, const fs::path& path, const Picture& picture) {
  const std::string ending = ending_of(path);
  if (!has(picture, ending)) {
    throw UsageError(fmt::format("{}: '{}' does not end in {}, which choose the format", option,
                                 path.string(), picture_endings(picture)));
  }
  if (is_drawn(picture, ending)) check_fonts();
}

void write_picture(OutputFiles& files, const std::string& option, const fs::path& path,
                   const Picture& picture) {
  check_picture(option, path, picture);
  const std::string ending = ending_of(path);
  if (ending == ".json") return files.write_text(option, picture.json());
  if (ending == ".html") return files.write_text(option, page_of(picture));
  files.write_text(option, render_figure(picture.figure(), figure_format(path)));
}

}  // namespace heed::cli
