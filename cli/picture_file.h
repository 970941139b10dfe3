// Files that show what a verb computed: each verb says what it can make, the ending chooses.
#pragma once

#include <CLI/App.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "heed/viz/attention_figure.h"
#include "heed/viz/figure.h"
#include "output_files.h"

namespace heed::cli {

// How the user wants pictures.
struct PictureArguments {
  std::string scale = "linear";
  std::string map = "viridis";
  bool hides_first = false;
  bool is_dark = false;

  Theme theme() const { return is_dark ? Theme::kDark : Theme::kLight; }
};

// Adds --color-scale, --map, --hide-first and --dark to a verb.
void add_picture_options(CLI::App& verb, PictureArguments& arguments);

// The options of a figure of weights that the arguments name; the rest is the caller's.
AttentionFigureOptions figure_options(const PictureArguments& arguments);

// A text as the title of a picture: itself, or of a long one the beginning. The tokens stand on the
// axes.
std::string headline(std::string_view text);

// What a verb can write. What is empty it has not, and files with that ending are refused.
struct Picture {
  std::function<Figure()> figure = {};     // .png, .svg, .pdf
  std::function<Figure()> dark = {};       // the same on a dark ground, for a page that has both
  std::function<std::string()> json = {};  // .json: the numbers
  std::function<std::string()> page = {};  // .html: the page to play with; without it, the figure
};

// Whether the ending is one that a Picture may have, in any case.
bool is_picture(const std::filesystem::path& path);

// The endings of what `picture` has, for help and messages: ".png, .svg, .pdf or .json".
std::string picture_endings(const Picture& picture);

// Throws UsageError unless `picture` has what the path's ending names, and std::runtime_error where
// that is drawn and there is no font. For a verb to call before it computes.
void check_picture(const std::string& option, const std::filesystem::path& path,
                   const Picture& picture);

// Writes the file that `option` has reserved at `path`.
void write_picture(OutputFiles& files, const std::string& option, const std::filesystem::path& path,
                   const Picture& picture);

}  // namespace heed::cli
