// The tree of a regular expression: see pattern.h for the syntax.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "text/character_class.h"

namespace heed { inline namespace v0 { namespace text {

struct PatternNode {
  static constexpr std::uint32_t kEndless = static_cast<std::uint32_t>(-1);

  enum class Kind : std::uint8_t {
    kCharacter,  // one of a class
    kAhead,      // the next character is one of a class, or is_negated: not
    kLineEnd,
    kSequence,  // all parts
    kChoice,    // the first part that matches
    kRepeat     // the only part, from `least` to `most` times
  };
  Kind kind = Kind::kSequence;
  std::uint32_t character_class = 0;  // also of the part of a possessive repetition
  bool is_negated = false;
  bool is_possessive = false;
  std::uint32_t least = 1;
  std::uint32_t most = 1;
  std::vector<PatternNode> parts{};
};

// Appends the classes of the pattern. Throws PatternError.
PatternNode parse_pattern(std::string_view text, std::vector<CharacterClass>& classes);

// The number of characters of the shortest match, at most 1.
std::size_t least_size(const PatternNode& node);

}}}  // namespace heed::v0::text
