// Text from a file, fit to be shown in an error message.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace heed { inline namespace v0 { namespace io {

// What is not printable ASCII becomes '?', so that no file talks to a terminal; long text is cut.
inline std::string printable(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return text.size() > kLongest ? shown + "..." : shown;
}

}}}  // namespace heed::v0::io
