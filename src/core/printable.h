// Text from a file in a form that is safe in error messages.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace io {

// Replaces everything but printable ASCII by '?', so that no control characters of a file reach a
// terminal, and cuts long text.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kLongest ? shown + "..." : shown;
}

}}}  // namespace heed::v0::io
