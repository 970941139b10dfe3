// Pre-tokenizers: how a text is cut into the pieces that the model sees one at a time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "text/aligned_text.h"
#include "text/split_patterns.h"

namespace heed { inline namespace v0 { namespace text {

struct PreTokenized {
  AlignedText text;
  std::vector<Span> pieces;  // of the text, in its order; none is empty
};

using PreTokenizer = std::function<void(PreTokenized&)>;

// What becomes of a match, of what is cut by it.
enum class SplitBehavior {
  kRemoved,             // the match goes
  kIsolated,            // each match is a piece
  kMergedWithPrevious,  // it ends the piece before it
  kMergedWithNext,      // it begins the piece after it
  kContiguous,          // matches that follow each other are one piece
};

// Cuts at characters of a kind.
void split_characters(PreTokenized& text, bool (*is_match)(char32_t) noexcept,
                      SplitBehavior behavior);

// Cuts at every occurrence of `literal`, not empty; what lies between them is the match where
// `inverts`.
struct LiteralSplit {
  std::string literal;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool inverts = false;
};
void split_literal(PreTokenized& text, const LiteralSplit& split);

// Cuts into the matches of a pattern.
void split_pattern(PreTokenized& text, SplitPattern pattern);

// Keeps what white space separates, each character of punctuation alone.
void split_bert(PreTokenized& text);

// Keeps runs of \w and runs of what is neither \w nor white space.
void split_words(PreTokenized& text);

// The bytes of each piece as visible characters, after the cuts of GPT-2 where `splits`;
// `adds_space` puts ' ' before pieces that do not begin with one.
struct ByteLevelSplit {
  bool adds_space = true;
  bool splits = true;
};
void split_byte_level(PreTokenized& text, const ByteLevelSplit& options);

}}}  // namespace heed::v0::text
