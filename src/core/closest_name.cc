#include "core/closest_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace heed { inline namespace v0 { namespace detail {

namespace {

// A limit on the length of a user's name; all known names are shorter.
constexpr std::size_t kLongestName = 100;

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({changed, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string_view closest_name(std::string_view name, const std::vector<std::string_view>& names) {
  std::string_view closest;
  if (name.size() > kLongestName) return closest;
  std::size_t least = kLongestName;
  for (const std::string_view known : names) {
    const std::size_t distance = edit_distance(name, known);
    if (distance >= least || distance > std::max<std::size_t>(1, known.size() / 3)) continue;
    least = distance;
    closest = known;
  }
  return closest;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& names) {
  const std::string_view closest = closest_name(name, names);
  return closest.empty() ? "" : fmt::format("; did you mean '{}'?", closest);
}

}}}  // namespace heed::v0::detail
