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

// Appends the first `decimals` after the point that `svg` starts with and returns the size of the
// point and all of them.
std::size_t append_decimals(std::string_view svg, std::size_t decimals, std::string& result) {
  result += svg.front();
  std::size_t size = 1;
  for (; size < svg.size() && is_digit(svg[size]); ++size) {
    if (size <= decimals) result += svg[size];
  }
  while (result.back() == '0') result.pop_back();
  if (result.back() == '.') result.pop_back();
  return size;
}

// Appends the path ` d="M 1 2.345 L 3 4 Z M 1 2.345 "` that `svg` starts with as
// ` d="M1 2.34L3 4Z"` and returns its size; 0 where it does not end. Nobody sees a hundredth of a
// unit, nor where a pen stops that draws no more.
std::size_t append_path(std::string_view svg, std::string& result) {
  constexpr std::size_t kDecimals = 2;
  constexpr std::string_view kBegin = " d=\"";
  const std::size_t end = svg.find('"', kBegin.size());
  if (end == svg.npos) return 0;
  std::string_view path = svg.substr(kBegin.size(), end - kBegin.size());
  const std::size_t last = path.rfind('M');
  if (last != path.npos && last > 0 && path.find_first_of("LCZ", last) == path.npos) {
    path = path.substr(0, last);
  }
  const auto is_letter = [](char c) { return c >= 'A' && c <= 'Z'; };
  result += kBegin;
  while (!path.empty()) {
    const char next = path.size() > 1 ? path[1] : 'Z';
    if (path.front() == '.') {
      path.remove_prefix(append_decimals(path, kDecimals, result));
      continue;
    }
    const bool separates = path.front() == ' ' && !is_letter(next) && !is_letter(result.back());
    if (path.front() != ' ' || separates) result += path.front();
    path.remove_prefix(1);
  }
  result += '"';
  return end + 1;
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
  constexpr std::array<std::string_view, 7> kDefaults{
      "stroke:none;",         "fill-rule:nonzero;",    "fill-opacity:1;", "stroke-opacity:1;",
      "stroke-linecap:butt;", "stroke-miterlimit:10;", "stop-opacity:1;"};
  std::string result;
  while (!svg.empty()) {
    std::size_t skipped = 0;
    for (const std::string_view text : kDefaults) {
      if (svg.substr(0, text.size()) == text) skipped = text.size();
    }
    if (skipped == 0 && svg.substr(0, 4) == "rgb(") skipped = append_color(svg, result);
    if (skipped == 0 && svg.substr(0, 4) == " d=\"") skipped = append_path(svg, result);
    if (skipped == 0) {
      constexpr std::size_t kDecimals = 3;
      const bool is_point = svg.front() == '.' && !result.empty() && is_digit(result.back());
      if (is_point) {
        skipped = append_decimals(svg, kDecimals, result);
      } else {
        result += svg[skipped++];
      }
    }
    svg.remove_prefix(skipped);
  }
  return result;
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

}  // namespace heed::inline v0::figure
