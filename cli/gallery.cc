// heed gallery: draws every picture that explains attention.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "arguments.h"
#include "gallery/pictures.h"
#include "heed/core/error.h"
#include "io/folder.h"
#include "io/json.h"
#include "io/text_file.h"
#include "output_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kHtmlIndex = "index.html";
constexpr const char* kMarkdownIndex = "README.md";
constexpr std::size_t kIndexBeginning = 4096;

struct GalleryArguments {
  std::string folder;
  std::string format = "svg";
  std::vector<std::string> only;
  bool is_light_only = false;
  bool list = false;
  std::string times;
};

constexpr const char* kTimesPicture = "time-against-length";

// Returns the report that --times names; null without it.
nlohmann::json read_times(const std::string& path) {
  if (path.empty()) return nullptr;
  nlohmann::json report = io::parse_json(io::read_text_file(path));
  if (!report.is_object()) {
    throw std::runtime_error(fmt::format("--times: '{}' holds no JSON object", path));
  }
  return report;
}

Figure drawn_picture(const learn::GalleryPicture& picture, const nlohmann::json& times,
                     Theme theme) {
  if (times.is_null() || picture.name != kTimesPicture) return picture.draw(theme);
  try {
    return learn::draw_time_against_length(times, theme);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string("--times: ") + error.what());
  }
}

std::string list_of_pictures() {
  std::string text;
  for (const learn::GalleryPicture& picture : learn::all_pictures()) {
    text += fmt::format("  {:<26} {}{}\n", picture.name, picture.title,
                        picture.origin == learn::Origin::kIllustrative ? " (illustrative)" : "");
  }
  return text;
}

std::vector<learn::GalleryPicture> chosen_pictures(const std::vector<std::string>& names) {
  const auto pictures = learn::all_pictures();
  if (names.empty()) return {pictures.begin(), pictures.end()};
  std::vector<learn::GalleryPicture> chosen;
  for (const std::string& name : names) {
    const auto found = std::find_if(
        pictures.begin(), pictures.end(),
        [&name](const learn::GalleryPicture& picture) { return picture.name == name; });
    if (found == pictures.end()) {
      throw UsageError(fmt::format("--only: there is no \"{}\". The pictures are:\n{}", name,
                                   list_of_pictures()));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

// True if the file's beginning contains the mark of a gallery that heed wrote.
bool is_index_of_heed(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::string beginning(kIndexBeginning, '\0');
  stream.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  beginning.resize(static_cast<std::size_t>(stream.gcount()));
  return beginning.find(learn::kGalleryMark) != beginning.npos;
}

// Throws unless a folder can be written: it may replace a gallery that heed wrote, but no other
// README.md, index.html or picture. With --only, pictures may be replaced, as --out may replace a
// file.
void check_is_replaceable(const fs::path& folder, const std::vector<std::string>& pictures) {
  bool is_gallery = false;
  for (const char* name : {kHtmlIndex, kMarkdownIndex}) {
    if (!fs::exists(folder / name)) continue;
    if (!is_index_of_heed(folder / name)) io::refuse_existing(folder, {name});
    is_gallery = true;
  }
  if (!is_gallery) io::refuse_existing(folder, pictures);
}

void write_gallery(const GalleryArguments& arguments) {
  check_fonts();
  const auto pictures = chosen_pictures(arguments.only);
  const nlohmann::json times = read_times(arguments.times);
  const std::string ending = "." + arguments.format;
  const fs::path folder = arguments.folder;
  io::make_folder(folder);
  // A part of the gallery does not replace the index of the whole gallery.
  const bool has_index = arguments.only.empty();
  const auto themes = arguments.is_light_only ? std::vector{Theme::kLight}
                                              : std::vector{Theme::kLight, Theme::kDark};
  if (has_index) {
    std::vector<std::string> names;
    for (const learn::GalleryPicture& picture : pictures) {
      for (const Theme theme : themes) names.push_back(learn::picture_file(picture, theme, ending));
    }
    check_is_replaceable(folder, names);
  }
  OutputFiles files;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    files.reserve(name, folder / name);
    files.write_text(name, bytes);
  };
  for (const learn::GalleryPicture& picture : pictures) {
    for (const Theme theme : themes) {
      const std::string name = learn::picture_file(picture, theme, ending);
      const Figure figure = drawn_picture(picture, times, theme);
      if (arguments.format != "html") {
        add(name, render_figure(figure, figure_format(name)));
      } else if (theme == Theme::kLight && themes.size() > 1) {
        add(name, figure_page(figure, drawn_picture(picture, times, Theme::kDark)));
      } else {
        add(name, figure_page(figure));
      }
    }
  }
  if (has_index) {
    const bool has_dark = !arguments.is_light_only;
    add(kHtmlIndex, learn::html_index(pictures, ending, has_dark));
    add(kMarkdownIndex, learn::markdown_index(pictures, ending, has_dark));
  }
  files.commit();
  std::cout << fmt::format("{} pictures{} in {}\n", pictures.size(),
                           arguments.is_light_only ? "" : ", light and dark,", arguments.folder);
}

}  // namespace

void add_gallery(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("gallery", "Draw the pictures that explain attention");
  auto arguments = std::make_shared<GalleryArguments>();
  CLI::Option* folder =
      add_option(*verb, "DIR", arguments->folder,
                 "The folder for the pictures and their index; it is made where missing");
  add_option(*verb, "--format", arguments->format,
             "What the pictures are written as; a page (html) has their numbers in tables "
             "beside them")
      ->check(one_of({"svg", "png", "pdf", "html"}))
      ->type_name("svg|png|pdf|html")
      ->capture_default_str();
  add_list(*verb, "--only", arguments->only, {},
           "Only these pictures, joined by commas, and no index")
      ->type_name("NAMES");
  add_option(*verb, "--times", arguments->times,
             "What `heed bench linear --json` printed: drawn as time-against-length, in place of "
             "the times in heed's documentation")
      ->type_name("FILE")
      ->needs(folder);
  add_flag(*verb, "--light", arguments->is_light_only, "No dark pictures beside the light ones");
  add_flag(*verb, "--list", arguments->list, "List the pictures")->excludes(folder);
  verb->callback([arguments] {
    if (arguments->list) {
      std::cout << list_of_pictures();
    } else if (arguments->folder.empty()) {
      throw UsageError("DIR is missing: the folder for the pictures");
    } else {
      write_gallery(*arguments);
    }
  });
}

}  // namespace heed::cli
