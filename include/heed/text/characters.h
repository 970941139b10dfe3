/// Text as numbers, one for each character.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "heed/config.h"

namespace heed::inline v0::text {

/// The characters (code points) that occur in a text, numbered in their order in Unicode: the
/// vocabulary of a small model that writes letter by letter. Immutable.
class HEED_API Characters {
 public:
  /// @throws InvalidArgument when `text` is not valid UTF-8, with the offset of the offending byte.
  explicit Characters(std::string_view text);

  std::int64_t size() const noexcept { return static_cast<std::int64_t>(characters_.size()); }
  /// All of them in order: Characters(all()) is the same again.
  std::string all() const;

  /// The number of each character. Four bytes each, for texts are long.
  /// @throws InvalidArgument when the text is not valid UTF-8, or naming a character that is not
  /// among them.
  std::vector<std::int32_t> encode(std::string_view text) const;

  /// The character of a number, which is in [0, size()).
  const std::string& operator[](std::int64_t id) const HEED_LIFETIME_BOUND {
    return characters_[static_cast<std::size_t>(id)];
  }

 private:
  std::vector<std::string> characters_;
  std::map<std::string, std::int32_t, std::less<>> ids_;
};

}  // namespace heed::inline v0::text
