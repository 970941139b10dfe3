// What a model expects around its texts: post-processors.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "heed/text/tokenizer.h"

namespace heed { inline namespace v0 { namespace text {

// A text of the input, or a token beside it.
struct FramePart {
  enum class Kind { kFirstText, kSecondText, kToken } kind = Kind::kFirstText;
  std::int64_t id = 0;  // of a token
  std::int64_t type = 0;
};

// Takes white space off the ranges of tokens that begin or end with it.
struct RangeTrimming {
  bool adds_space = false;  // a space that was added before the text is not taken off
};

struct Framing {
  std::vector<FramePart> single{{}};
  std::vector<FramePart> pair;  // empty: there is no form for two texts
  std::optional<RangeTrimming> trimming;
};

// The range of a token that is written as `token`.
TextRange trimmed(TextRange range, std::string_view token, bool is_first,
                  const RangeTrimming& trimming);

// The texts with the tokens of the parts, or without them. `second` may be nullptr where no part is
// the second text.
Encoding framed(const std::vector<FramePart>& parts, const Encoding& first, const Encoding* second,
                bool adds_tokens);

}}}  // namespace heed::v0::text
