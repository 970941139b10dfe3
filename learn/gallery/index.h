// The pages that list a gallery's pictures.
#pragma once

#include <span>
#include <string>

#include "gallery/pictures.h"

namespace heed::learn {

// What both pages begin with, so that heed knows its own.
inline constexpr const char* kGalleryMark = "generator: heed gallery";

// The file of a picture: its name, "-dark" for the dark one, and the format's ending.
std::string picture_file(const GalleryPicture& picture, Theme theme, const std::string& ending);

// One HTML page that shows the dark pictures, where there are some, on dark screens; without
// scripts or requests beyond the pictures beside it.
std::string html_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                       bool has_dark);

// The same in Markdown.
std::string markdown_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                           bool has_dark);

}  // namespace heed::learn
