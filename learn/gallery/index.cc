#include <fmt/format.h>

#include "gallery/pictures.h"

namespace heed::learn {

namespace {

constexpr std::string_view kIntroduction =
    "Attention, drawn. All but the illustrative ones, whose numbers are made up, show what heed "
    "computes or measured.";

constexpr std::string_view kHtmlHead = R"(<!DOCTYPE html>
<html lang="en">
<meta charset="utf-8">
<!-- generator: heed gallery -->
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Attention in pictures</title>
<style>
  :root { color-scheme: light dark; }
  body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
  img { max-width: 100%; height: auto; }
  section { margin: 3rem 0; }
  .origin { font-size: 0.85em; opacity: 0.75; }
</style>
)";

std::string_view describe(Origin origin) {
  switch (origin) {
    case Origin::kComputed:
      return "Computed by heed from inputs that PyTorch draws alike.";
    case Origin::kIllustrative:
      return "Illustrative: the numbers are made up.";
    case Origin::kMeasured:
      return "Measured with heed, on the machine that the note names; not measured anew.";
    case Origin::kOwn:
      break;
  }
  return "Computed by heed.";
}

// Escapes the HTML characters that occur in names and texts of pictures.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '"') {
      result += "&quot;";
    } else {
      result += c;
    }
  }
  return result;
}

// Returns the element of a picture, which uses the dark version on dark screens.
std::string image(const GalleryPicture& picture, const std::string& ending, bool has_dark) {
  const std::string file = picture_file(picture, Theme::kLight, ending);
  if (ending == ".pdf" || ending == ".html") return fmt::format("<a href=\"{0}\">{0}</a>", file);
  std::string light =
      fmt::format("<img src=\"{}\" alt=\"{}\" loading=\"lazy\">", file, escaped(picture.title));
  if (!has_dark) return light;
  return fmt::format(
      "<picture><source media=\"(prefers-color-scheme: dark)\" srcset=\"{}\">{}</picture>",
      picture_file(picture, Theme::kDark, ending), light);
}

}  // namespace

std::string picture_file(const GalleryPicture& picture, Theme theme, const std::string& ending) {
  return fmt::format("{}{}{}", picture.name, theme == Theme::kDark ? "-dark" : "", ending);
}

std::string html_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                       bool has_dark) {
  std::string page(kHtmlHead);
  page += fmt::format("<h1>Attention in pictures</h1>\n<p>{}</p>\n", kIntroduction);
  for (const GalleryPicture& picture : pictures) {
    page += fmt::format(
        "<section id=\"{}\">\n<h2>{}</h2>\n{}\n<p>{}</p>\n<p class=\"origin\">{}</p>\n"
        "</section>\n",
        picture.name, escaped(picture.title), image(picture, ending, has_dark),
        escaped(picture.shows), describe(picture.origin));
  }
  return page + "</html>\n";
}

std::string markdown_index(std::span<const GalleryPicture> pictures, const std::string& ending,
                           bool has_dark) {
  std::string page =
      fmt::format("<!-- {} -->\n# Attention in pictures\n\n{}\n", kGalleryMark, kIntroduction);
  for (const GalleryPicture& picture : pictures) {
    page += fmt::format("\n## {}\n\n{}\n\n{} *{}*\n", picture.title,
                        image(picture, ending, has_dark), picture.shows, describe(picture.origin));
  }
  return page;
}

}  // namespace heed::learn
