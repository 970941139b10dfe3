#include "viz/figure/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <span>
#include <system_error>

namespace heed { inline namespace v0 { namespace figure {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Rounds every number of `text` to at most `decimals` decimals, without trailing zeros.
std::string with_decimals(std::string_view text, std::size_t decimals) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const bool is_point = text[at] == '.' && !result.empty() && is_digit(result.back());
    result += text[at++];
    if (!is_point) continue;
    for (std::size_t i = 0; at < text.size() && is_digit(text[at]); ++i, ++at) {
      if (i < decimals) result += text[at];
    }
    while (result.back() == '0') result.pop_back();
    if (result.back() == '.') result.pop_back();
  }
  return result;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string short_numbers(std::string_view text) { return with_decimals(text, 3); }

// Shortens the colour "rgb(12.5%,50%,100%)" to "#2080ff"; other values are unchanged.
std::string short_color(std::string_view value) {
  constexpr std::string_view kBegin = "rgb(";
  if (value.substr(0, kBegin.size()) != kBegin || value.back() != ')') return std::string(value);
  std::string_view channels = value.substr(kBegin.size());
  std::string color = "#";
  while (!channels.empty()) {
    double percent = 0;
    const char* last = channels.data() + channels.size();
    const auto [next, error] = std::from_chars(channels.data(), last, percent);
    if (error != std::errc() || next == last || *next != '%') return std::string(value);
    color += fmt::format("{:02x}", static_cast<int>(std::lround(percent * 2.55)));
    // Skips a percent sign, and a comma or the closing bracket.
    channels.remove_prefix(
        std::min(static_cast<std::size_t>(next + 2 - channels.data()), channels.size()));
  }
  return color.size() == 7 ? color : std::string(value);
}

// Shortens the path "M 1 2.345 L 3 4 Z M 1 2.345 " to "M1 2.34L3 4Z": a hundredth of a unit is not
// visible, nor is a final move.
std::string short_path(std::string_view path) {
  const std::size_t last = path.rfind('M');
  if (last != path.npos && last > 0 && path.find_first_of("LCZ", last) == path.npos) {
    path = path.substr(0, last);
  }
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  const std::string numbers = with_decimals(path, 2);
  std::string result;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const bool stands_apart =
        numbers[i] != ' ' || (i + 1 < numbers.size() && !result.empty() &&
                              !is_letter(numbers[i + 1]) && !is_letter(result.back()));
    if (stands_apart) result += numbers[i];
  }
  return result;
}

// Removes SVG's defaults from declarations such as
// "fill-rule:nonzero;fill:rgb(100%,100%,100%);stroke-width:1.0000;".
std::string short_style(std::string_view style) {
  constexpr std::array<std::string_view, 7> kDefaults{
      "stroke:none",         "fill-rule:nonzero",    "fill-opacity:1", "stroke-opacity:1",
      "stroke-linecap:butt", "stroke-miterlimit:10", "stop-opacity:1"};
  std::string result;
  while (!style.empty()) {
    style.remove_prefix(std::min(style.find_first_not_of(' '), style.size()));
    const std::string_view declaration = style.substr(0, style.find(';'));
    style.remove_prefix(std::min(declaration.size() + 1, style.size()));
    if (declaration.empty() || contains(kDefaults, declaration)) continue;
    const std::size_t value = std::min(declaration.find(':') + 1, declaration.size());
    const std::string color = short_color(declaration.substr(value));
    result.append(declaration.substr(0, value));
    result.append(color.rfind('#', 0) == 0 ? color : short_numbers(color)).append(";");
  }
  return result;
}

// The function that shortens an attribute's value; null if every character matters, as in names,
// addresses, versions and embedded images.
using Shortening = std::string (*)(std::string_view value);
Shortening shortening_of(std::string_view attribute) {
  constexpr std::array<std::string_view, 3> kColors{"fill", "stroke", "stop-color"};
  constexpr std::array<std::string_view, 16> kNumbers{
      "x",           "y",      "width",   "height",    "x1",
      "y1",          "x2",     "y2",      "cx",        "cy",
      "r",           "offset", "viewBox", "transform", "gradientTransform",
      "stroke-width"};
  if (attribute == "d") return short_path;
  if (attribute == "style") return short_style;
  if (contains(kColors, attribute)) return short_color;
  return contains(kNumbers, attribute) ? short_numbers : nullptr;
}

}  // namespace

std::string with_stable_names(std::string_view svg) {
  constexpr std::array<std::string_view, 3> kBeforeNames{"id=\"", "href=\"#", "url(#"};
  std::map<std::string_view, std::string> names;
  std::string result;
  while (!svg.empty()) {
    std::size_t begin = svg.npos;
    for (const std::string_view mark : kBeforeNames) {
      const std::size_t found = svg.find(mark);
      if (found != svg.npos) begin = std::min(begin, found + mark.size());
    }
    if (begin == svg.npos) break;
    const std::string_view name = svg.substr(begin, svg.find_first_of("\")", begin) - begin);
    auto [known, is_new] = names.try_emplace(name);
    if (is_new) known->second = fmt::format("d{}", names.size());
    result.append(svg.substr(0, begin)).append(known->second);
    svg.remove_prefix(begin + name.size());
  }
  return result.append(svg);
}

std::string compacted(std::string_view svg) {
  constexpr std::string_view kBeforeValue = "=\"";
  std::string result;
  for (std::size_t at = svg.find(kBeforeValue); at != svg.npos; at = svg.find(kBeforeValue)) {
    const std::string_view before = svg.substr(0, at);
    const std::size_t space = before.find_last_of(" \n");
    const std::size_t begin = at + kBeforeValue.size();
    const std::size_t end = std::min(svg.find('"', begin), svg.size());
    const std::string_view value = svg.substr(begin, end - begin);
    const Shortening shorten = shortening_of(before.substr(space == before.npos ? 0 : space + 1));
    result.append(before).append(kBeforeValue);
    result += shorten == nullptr || value.empty() ? std::string(value) : shorten(value);
    svg.remove_prefix(end);
    if (svg.empty()) break;
    result += '"';
    svg.remove_prefix(1);
  }
  return result.append(svg);
}

std::string without_styles(std::string_view svg) {
  constexpr std::string_view kBegin = " style=\"";
  std::string result;
  for (std::size_t at = svg.find(kBegin); at != svg.npos; at = svg.find(kBegin)) {
    result.append(svg.substr(0, at));
    svg.remove_prefix(at + kBegin.size());
    const std::size_t end = svg.find('"');
    std::string_view style = svg.substr(0, end);
    while (!style.empty()) {
      const std::string_view property = style.substr(0, style.find(';'));
      const std::size_t colon = property.find(':');
      const std::size_t name = property.find_first_not_of(' ');
      if (colon != property.npos && name < colon) {
        result.append(fmt::format(" {}=\"{}\"", property.substr(name, colon - name),
                                  property.substr(colon + 1)));
      }
      style.remove_prefix(std::min(property.size() + 1, style.size()));
    }
    svg.remove_prefix(std::min(end, svg.size() - 1) + 1);
  }
  return result.append(svg);
}

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string with_title(std::string svg, std::string_view title) {
  const std::size_t root = svg.find("<svg ");
  const std::size_t end = svg.find('>', root);
  if (root == svg.npos || end == svg.npos || title.empty()) return svg;
  return svg.insert(end + 1, fmt::format("\n<title>{}</title>", escaped(title)));
}

}}}  // namespace heed::v0::figure
