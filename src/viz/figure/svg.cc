#include "viz/figure/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <system_error>

namespace heed::inline v0::figure {
namespace {

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
      default:
        result += c;
    }
  }
  return result;
}

// Appends the colour "rgb(12.5%,50%,100%)" that `svg` starts with as "#2080ff" and returns its
// size; 0 where it is written otherwise.
std::size_t append_color(std::string_view svg, std::string& result) {
  const std::size_t end = svg.find(')');
  std::string_view channels = svg.substr(0, end).substr(4);
  std::string color = "#";
  while (end != svg.npos && !channels.empty()) {
    double percent = 0;
    const char* last = channels.data() + channels.size();
    const auto [next, error] = std::from_chars(channels.data(), last, percent);
    if (error != std::errc() || next == last || *next != '%') return 0;
    color += fmt::format("{:02x}", static_cast<int>(std::lround(percent * 2.55)));
    channels.remove_prefix(static_cast<std::size_t>(next + 1 - channels.data()));
    if (!channels.empty()) channels.remove_prefix(1);
  }
  if (color.size() != 7) return 0;
  result += color;
  return end + 1;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Appends the first decimals after the point that `svg` starts with and returns the size of the
// point and all of them. Nobody sees a thousandth of a unit.
std::size_t append_decimals(std::string_view svg, std::string& result) {
  constexpr std::size_t kDecimals = 3;
  std::size_t size = 1;
  for (; size < svg.size() && is_digit(svg[size]); ++size) {
    if (size <= kDecimals) result += svg[size];
  }
  return size;
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
  constexpr std::array<std::string_view, 6> kDefaults{
      "stroke:none;",      "fill-rule:nonzero;",   "fill-opacity:1;",
      "stroke-opacity:1;", "stroke-linecap:butt;", "stroke-miterlimit:10;"};
  std::string result;
  while (!svg.empty()) {
    std::size_t skipped = 0;
    for (const std::string_view text : kDefaults) {
      if (svg.substr(0, text.size()) == text) skipped = text.size();
    }
    if (skipped == 0 && svg.substr(0, 4) == "rgb(") skipped = append_color(svg, result);
    if (skipped == 0) {
      const bool is_point = svg.front() == '.' && !result.empty() && is_digit(result.back());
      result += svg[skipped++];
      if (is_point) skipped = append_decimals(svg, result);
    }
    svg.remove_prefix(skipped);
  }
  return result;
}

std::string with_title(std::string svg, std::string_view title) {
  const std::size_t root = svg.find("<svg ");
  const std::size_t end = svg.find('>', root);
  if (root == svg.npos || end == svg.npos || title.empty()) return svg;
  return svg.insert(end + 1, fmt::format("\n<title>{}</title>", escaped(title)));
}

}  // namespace heed::inline v0::figure
