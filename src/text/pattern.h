// Regular expressions, in the part of the syntax with which published tokenizers split texts:
//
//     a \n \t \\ \. .  [a-z\p{L}[…]] [^…]  \s \S \d \p{Lu} \P{N}  (…) (?:…) (?i:…) a|b
//     ? * + {2} {2,} {2,5}, greedy; ?+ *+ ++ behind one character;  (?=\s) (?!\S)  $
//
// Alternatives are tried in order, as by Oniguruma, which the library `tokenizers` uses. The time
// is the product of the text's and the pattern's sizes, for any pattern: of a place in the text and
// a place in the pattern, each pair is tried once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "heed/core/function_ref.h"
#include "text/character_class.h"
#include "text/span.h"

namespace heed { inline namespace v0 { namespace text {

// What is wrong with a pattern: "has '(?<', which heed does not know, at byte 3".
class PatternError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Pattern {
 public:
  // Throws PatternError for what is outside the syntax above, for a pattern that matches the empty
  // text, and for one that is too large.
  explicit Pattern(std::string_view text);

  // Calls `each` with every match in text[part], from left to right, as if the part were the whole
  // text. The text is valid UTF-8.
  void find(std::string_view text, Span part, FunctionRef<void(Span)> each) const;

  // A step of the program: a character of a class, a choice, and so on.
  struct Step {
    enum class Kind : std::uint8_t {
      kCharacter,  // a character of classes[first]
      kWhile,      // as many as there are, without alternatives
      kIf,         // one if it is there, without alternatives
      kAhead,      // the next character is one of classes[first]
      kNotAhead,   // it is none, or there is none
      kLineEnd,    // before '\n' or at the end
      kChoice,     // first, otherwise second
      kJump,
      kMatch
    };
    Kind kind;
    std::uint32_t first = 0;
    std::uint32_t second = 0;
    std::uint32_t place = 0;  // of choices and kWhile, which are tried once for each character
  };

 private:
  class Matching;

  std::vector<CharacterClass> classes_;
  std::vector<Step> steps_;
  std::uint32_t num_places_ = 0;
};

}}}  // namespace heed::v0::text
