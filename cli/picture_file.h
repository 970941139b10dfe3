// Writes pictures of the results of a verb. Each verb provides the kinds that it supports; the
// file's ending selects one.
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

// The picture options of the command line.
struct PictureArguments {
  std::string scale = "linear";
  std::string map = "viridis";
  bool hides_first = false;
  bool is_dark = false;

  Theme theme() const { return is_dark ? Theme::kDark : Theme::kLight; }
};

// Adds --color-scale, --map, --hide-first and --dark to a verb.
void add_picture_options(CLI::App& verb, PictureArguments& arguments);

// Returns the options of a weights figure that the arguments set; the caller sets the rest.
AttentionFigureOptions figure_options(const PictureArguments& arguments);

// Returns a text as the title of a picture, shortened if long. The axes show all tokens.
std::string headline(std::string_view text);

// The kinds of files that a verb can write. Endings of empty members are refused.
struct Picture {
  std::function<Figure()> figure = {};     // .png, .svg, .pdf
  std::function<Figure()> dark = {};       // the dark version, for a page that has both
  std::function<std::string()> json = {};  // .json: the numbers
  std::function<std::string()> page = {};  // the interactive page; without it, the figure
};

// True if a Picture may have the ending, in upper or lower case.
bool is_picture(const std::filesystem::path& path);

// Returns the endings that `picture` supports, for help and messages: ".png, .svg, .pdf or .json".
std::string picture_endings(const Picture& picture);

// Throws UsageError unless `picture` supports the path's ending, and std::runtime_error where
// drawing needs a font and none exists. Call it before computing.
void check_picture(const std::string& option, const std::filesystem::path& path,
                   const Picture& picture);

// Writes the file that `option` has reserved at `path`.
void write_picture(OutputFiles& files, const std::string& option, const std::filesystem::path& path,
                   const Picture& picture);

}  // namespace heed::cli
