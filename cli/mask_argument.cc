#include "mask_argument.h"

#include <fmt/format.h>

#include <sstream>

#include "heed/attention/mask_text.h"
#include "heed/core/error.h"
#include "heed/viz/layout.h"
#include "verbs.h"

namespace heed::cli {

std::string mask_table() {
  constexpr std::size_t kNames = 30;  // columns; a longer name gets its own line
  constexpr int kShown = 80 - 2 - static_cast<int>(kNames);
  std::string text;
  for (const MaskSyntax& mask : mask_syntax()) {
    std::string name = fmt::format("{}{}", mask.name, mask.arguments);
    if (name.size() >= kNames) {
      text += fmt::format("  {}\n", name);
      name.clear();
    }
    std::istringstream lines(wrap_text(std::string(mask.shows), kShown));
    for (std::string line; std::getline(lines, line); name.clear()) {
      text += fmt::format("  {:<{}}{}\n", name, kNames, line);
    }
  }
  return text;
}

Mask parse_mask(std::string_view option, std::string_view text) {
  try {
    return heed::parse_mask(text);
  } catch (const InvalidArgument& error) {
    constexpr std::string_view kFunction = "parse_mask: ";
    std::string_view problem = error.what();
    if (problem.starts_with(kFunction)) problem.remove_prefix(kFunction.size());
    throw UsageError(fmt::format("{}: {}", option, problem));
  }
}

}  // namespace heed::cli
