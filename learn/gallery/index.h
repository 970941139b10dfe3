// The index pages of a gallery.
#pragma once

#include <span>
#include <string>

#include "gallery/pictures.h"

namespace heed::learn {

// The beginning of both pages, by which heed recognises its own galleries.
inline constexpr const char* kGalleryMark = "generator: heed gallery";

// Returns the file name of a picture: its name, "-dark" for the dark version, and the format's
// ending.
std::string picture_file(const GalleryPicture& picture, Theme theme, const std::string& ending);

// Returns an HTML page that shows the dark pictures, if any, on dark screens. It has no scripts and
// requests nothing but the picture files.
std::string html_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                       bool has_dark);

// Returns the index as Markdown.
std::string markdown_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                           bool has_dark);

}  // namespace heed::learn
