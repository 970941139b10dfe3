#include "viz/figure/svg.h"

#include <fmt/format.h>

#include <array>
#include <map>

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

std::string with_title(std::string svg, std::string_view title) {
  const std::size_t root = svg.find("<svg ");
  const std::size_t end = svg.find('>', root);
  if (root == svg.npos || end == svg.npos || title.empty()) return svg;
  return svg.insert(end + 1, fmt::format("\n<title>{}</title>", escaped(title)));
}

}  // namespace heed::inline v0::figure
