// Finds a text in another one that arrives byte by byte.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

// The state is the number of bytes of the pattern that the last bytes of the text match. A text of
// n bytes takes O(n) steps, for any pattern. Source: Knuth, Morris, Pratt, Fast Pattern Matching in
// Strings, 1977
class LiteralMatcher {
 public:
  // `pattern` is not empty.
  explicit LiteralMatcher(std::string pattern)
      : pattern_(std::move(pattern)), borders_(pattern_.size(), 0) {
    for (std::size_t i = 1; i < pattern_.size(); ++i) {
      borders_[i] = after(borders_[i - 1], pattern_[i]);
    }
  }

  const std::string& pattern() const noexcept { return pattern_; }

  // Returns the state after one more byte. It is the pattern's size where a match ends, otherwise
  // smaller.
  std::size_t after(std::size_t state, char byte) const {
    while (state > 0 && pattern_[state] != byte) state = borders_[state - 1];
    return pattern_[state] == byte ? state + 1 : 0;
  }

 private:
  std::string pattern_;
  std::vector<std::size_t>
      borders_;  // for the first i + 1 bytes: the longest proper prefix that is also a suffix
};

}}}  // namespace heed::v0::text
