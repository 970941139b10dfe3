// heed gallery: every picture of the tutorials, drawn.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "gallery/index.h"
#include "gallery/pictures.h"
#include "heed/error.h"
#include "output_files.h"
#include "verbs.h"

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

struct GalleryArguments {
  std::string folder;
  std::string format = "svg";
  std::vector<std::string> only;
  bool is_light_only = false;
  bool list = false;
};

std::string list_of_pictures() {
  std::string text;
  for (const GalleryPicture& picture : all_pictures()) {
    text += fmt::format("  {:<26} {}{}\n", picture.name, picture.title,
                        picture.origin == Origin::kIllustrative ? " (illustrative)" : "");
  }
  return text;
}

std::vector<GalleryPicture> chosen_pictures(const std::vector<std::string>& names) {
  const auto pictures = all_pictures();
  if (names.empty()) return {pictures.begin(), pictures.end()};
  std::vector<GalleryPicture> chosen;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(pictures.begin(), pictures.end(),
                     [&name](const GalleryPicture& picture) { return picture.name == name; });
    if (found == pictures.end()) {
      throw UsageError(fmt::format("--only: there is no \"{}\". The pictures are:\n{}", name,
                                   list_of_pictures()));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw IoError(fmt::format("cannot make the folder '{}': {}", folder.string(), error.message()));
  }
}

void write_gallery(const GalleryArguments& arguments) {
  const auto pictures = chosen_pictures(arguments.only);
  const std::string ending = "." + arguments.format;
  const fs::path folder = arguments.folder;
  make_folder(folder);
  OutputFiles files;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    files.reserve(name, folder / name);
    files.write_text(name, bytes);
  };
  for (const GalleryPicture& picture : pictures) {
    for (const Theme theme : {Theme::kLight, Theme::kDark}) {
      if (theme == Theme::kDark && arguments.is_light_only) continue;
      const std::string name = picture_file(picture, theme, ending);
      const Figure figure = picture.draw(theme);
      add(name, arguments.format == "html" ? figure_page(figure)
                                           : render_figure(figure, figure_format(name)));
    }
  }
  // A part of the gallery does not replace the index of the whole.
  if (arguments.only.empty()) {
    const bool has_dark = !arguments.is_light_only;
    add("index.html", html_index(pictures, ending, has_dark));
    add("README.md", markdown_index(pictures, ending, has_dark));
  }
  files.commit();
  std::cout << fmt::format("{} pictures{} in {}\n", pictures.size(),
                           arguments.is_light_only ? "" : ", light and dark,", arguments.folder);
}

}  // namespace

void add_gallery(CLI::App& command) {
  CLI::App* verb = command.add_subcommand("gallery", "Draw every picture of the tutorials");
  auto arguments = std::make_shared<GalleryArguments>();
  CLI::Option* folder =
      verb->add_option("DIR", arguments->folder,
                       "The folder for the pictures and their index; it is made where missing");
  verb->add_option("--format", arguments->format,
                   "What the pictures are written as; a page (html) has their numbers in tables "
                   "beside them")
      ->check(CLI::IsMember({"svg", "png", "pdf", "html"}).description(""))
      ->type_name("svg|png|pdf|html")
      ->capture_default_str();
  verb->add_option("--only", arguments->only, "Only these pictures, and no index")
      ->type_name("NAME")
      ->delimiter(',');
  verb->add_flag("--light", arguments->is_light_only, "No dark pictures beside the light ones");
  verb->add_flag("--list", arguments->list, "List the pictures")->excludes(folder);
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
