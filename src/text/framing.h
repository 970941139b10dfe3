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

// Returns the trimmed range of a token with the text `token`.
TextRange trimmed(TextRange range, std::string_view token, bool is_first,
                  const RangeTrimming& trimming);

// Returns the texts with or without the tokens of `parts`. `second` may be nullptr if no part is
// the second text.
Encoding framed(const std::vector<FramePart>& parts, const Encoding& first, const Encoding* second,
                bool adds_tokens);

}}}  // namespace heed::v0::text
