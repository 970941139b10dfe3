// The tokens that a model expects around its texts (post-processors).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace text {

// An input text, or a token around it.
struct FramePart {
  enum class Kind { kFirstText, kSecondText, kToken } kind = Kind::kFirstText;
  std::int64_t id = 0;  // of a token
  std::int64_t type = 0;
};

// Removes leading and trailing white space of tokens from their ranges.
struct RangeTrimming {
  bool adds_space = false;  // a space that was added before the text is not removed
};

struct Framing {
  std::vector<FramePart> single{{}};
  std::vector<FramePart> pair;  // empty if there is no form for two texts
  std::optional<RangeTrimming> trimming;
};

// The white space around a token as it is written, in bytes of the text, and the token's
// characters.
struct WrittenSpaces {
  std::int64_t leading = 0;
  std::int64_t trailing = 0;
  std::int64_t characters = 0;
};
WrittenSpaces spaces_of(std::string_view token);

// The same for tokens that are parts of one text, in the order of their beginnings. Added tokens
// may take the same white space one after another: it is counted once.
class SpacesOfParts {
 public:
  WrittenSpaces of(std::string_view part);

 private:
  std::string_view last_;
  WrittenSpaces of_last_;
  bool last_is_white_ = false;  // all of it
};

// The range of a token that has these spaces.
TextRange trimmed(TextRange range, const WrittenSpaces& token, bool is_first,
                  const RangeTrimming& trimming);

// Returns the texts with or without the tokens of `parts`. `second` may be nullptr if no part is
// the second text.
Encoding framed(const std::vector<FramePart>& parts, const Encoding& first, const Encoding* second,
                bool adds_tokens);

}}}  // namespace heed::v0::text
