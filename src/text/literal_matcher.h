// Where a text stands in another one that comes byte by byte.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

// Its state is how many bytes of the pattern the last bytes of the text are. A text of n bytes
// takes O(n) steps, whatever both are. Source: Knuth, Morris, Pratt, Fast Pattern Matching in
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

  // The state after one more byte; the pattern's size where it ends there, below that before.
  std::size_t after(std::size_t state, char byte) const {
    while (state > 0 && pattern_[state] != byte) state = borders_[state - 1];
    return pattern_[state] == byte ? state + 1 : 0;
  }

 private:
  std::string pattern_;
  std::vector<std::size_t>
      borders_;  // of the first i + 1 bytes: the longest that begins and ends them
};

}}}  // namespace heed::v0::text
